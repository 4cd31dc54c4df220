#include "data/convert/image_notes.h"

#include "base/error.h"

namespace crema {
namespace {

enum NoteKind { kBits, kChannels, kInks, kTurned, kRemark, kDiffers };

std::string numbers_of(const ConvertedImage& image) {
  return cat(image.channels, image.channels == 1 ? " channel" : " channels", " of ",
             image.real ? "real numbers" : "bytes");
}

}  // namespace

void ImageNotes::note(int kind, const std::string& text, const char* hint) {
  Note& note = notes_[kind];
  if (note.count++ > 0) return;
  note.first = text;
  note.hint = hint;
}

void ImageNotes::add(const std::string& path, const ConvertedImage& image) {
  if (first_.channels == 0) first_ = image;
  if (as_stored_ && (image.channels != first_.channels || image.real != first_.real)) {
    note(kDiffers,
         cat(path, ": has ", numbers_of(image), ", but the first image ", numbers_of(first_)),
         "; a net's batches need equal channels");
  }
  if (image.bits > 8) {
    note(kBits, cat(path, ": has ", image.bits, " bits a channel, of which 8 are kept"),
         "; -as_stored keeps all");
  }
  if (image.dropped_channels > 0)
    note(kChannels, cat(path, ": has alpha, which is left out"), "; -as_stored keeps it");
  if (image.cmyk)
    note(kInks, cat(path, ": has the inks of print (CMYK), which are made red, green and blue"),
         "");
  if (image.written_anew) {
    note(kTurned, cat(path, ": is turned as its EXIF data say, and so encoded anew"),
         "; -exif=false keeps the files as they are");
  }
  if (!image.remark.empty())
    note(kRemark, cat(path, ": is stored, though libjpeg says: ", image.remark), "");
}

void ImageNotes::say(Log& log) const {
  for (const auto& [kind, note] : notes_) {
    const int64_t others = note.count - 1;
    const std::string more =
        others == 0 ? "" : cat(" (so it is with ", others, others == 1 ? " other)" : " others)");
    log.warning(cat(note.first, more, note.hint));
  }
}

}  // namespace crema
