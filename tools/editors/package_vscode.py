#!/usr/bin/python3
"""Packages the extension for VS Code.

  package_vscode.py [FOLDER]

Writes FOLDER/crema-VERSION.vsix (the working directory), which `code --install-extension` and the menu of extensions take.
A .vsix is a zip with a manifest; no package of npm is needed.
"""
import json
import pathlib
import re
import sys
import zipfile
from xml.sax.saxutils import quoteattr

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TYPES = {".json": "application/json", ".js": "application/javascript", ".md": "text/markdown", ".txt": "text/plain",
         ".vsixmanifest": "text/xml"}


def manifest(package):
    attribute = lambda key, value: f"<Property Id={quoteattr(key)} Value={quoteattr(value)}/>"
    identity = " ".join(f"{key}={quoteattr(value)}" for key, value in [
        ("Language", "en-US"), ("Id", package["name"]), ("Version", package["version"]), ("Publisher", package["publisher"])])
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity {identity}/>
    <DisplayName>{package["displayName"]}</DisplayName>
    <Description xml:space="preserve">{package["description"]}</Description>
    <Tags>{",".join(package["keywords"])}</Tags>
    <Categories>{",".join(package["categories"])}</Categories>
    <License>extension/LICENSE.txt</License>
    <Properties>
      {attribute("Microsoft.VisualStudio.Code.Engine", package["engines"]["vscode"])}
      {attribute("Microsoft.VisualStudio.Code.ExtensionKind", "workspace")}
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def content_types():
    defaults = "".join(f'<Default Extension="{ending}" ContentType="{kind}"/>' for ending, kind in TYPES.items())
    return ('<?xml version="1.0" encoding="utf-8"?>\n'
            f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{defaults}</Types>\n')


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    package = json.loads((HERE / "vscode/package.json").read_text())
    package["version"] = re.search(r"project\(crema VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    files = {f"extension/{path.name}": path.read_text() for path in sorted((HERE / "vscode").iterdir())}
    files["extension/package.json"] = json.dumps(package, indent=2) + "\n"
    files["extension/LICENSE.txt"] = (ROOT / "LICENSE").read_text()
    target = folder / f"crema-{package['version']}.vsix"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {"[Content_Types].xml": content_types(), "extension.vsixmanifest": manifest(package), **files}.items():
            # The same files give the same bytes.
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            archive.writestr(info, text, zipfile.ZIP_DEFLATED)
    print(target)


main()
