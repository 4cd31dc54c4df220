"""Finds the commands of a page: indented by four spaces, in fences, and in backquotes."""
import re


class Block:
    def __init__(self, line, language, lines):
        self.line, self.language, self.lines = line, language, lines

    def commands(self):
        """Pairs of line number and command; lines that end with a backslash go on in the next one. Comments are left out."""
        found, parts, first = [], [], 0
        for number, text in enumerate(self.lines, self.line):
            if not parts:
                first = number
                if not text.strip() or text.lstrip().startswith("#"):
                    continue
            parts.append(text)
            if not text.endswith("\\"):
                command = "\n".join(parts)
                if len(parts) == 1:
                    command = re.sub(r"\s+#\s.*$", "", command)
                found.append((first, command.strip()))
                parts = []
        if parts:
            raise ValueError(f"line {first}: the command ends with a backslash")
        return found


def blocks_of(text):
    blocks, lines, i = [], text.split("\n"), 0
    while i < len(lines):
        fence = re.match(r"^```(\w*)$", lines[i])
        if fence:
            end = lines.index("```", i + 1)
            blocks.append(Block(i + 2, fence[1] or "plain", lines[i + 1:end]))
            i = end + 1
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            start = i
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                i += 1
            blocks.append(Block(start + 1, "shell", [line[4:] for line in lines[start:i]]))
        else:
            i += 1
    return blocks


def inline_commands(text):
    """Commands in backquotes, of one line or two: pairs of line number and command."""
    prose = re.sub(r"^```.*?^```$", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S | re.M)
    prose = re.sub(r"^    .*$", "", prose, flags=re.M)
    for match in re.finditer(r"`([^`]+)`", prose):
        command = " ".join(match[1].split())
        if re.match(r"(build/tools/|crema |caffe |data_scripts/|bash )", command):
            yield prose.count("\n", 0, match.start()) + 1, command


def links_of(text):
    """Relative links and images, without their anchors."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    prose = re.sub(r"`[^`]*`", lambda m: "x" if "](" not in m[0] else m[0], prose)
    for target in re.findall(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"", prose):
        link = (target[0] or target[1]).split("#")[0]
        if link and not re.match(r"\w+:", link):
            yield link
