// Shared code of the YOLO losses: objects, overlaps and the cell and box responsible for an object.
// For .cu files only, like device/parallel.h.
#pragma once

#include "base/error.h"
#include "base/host_device.h"
#include "kernels/labels/labels.h"
#include "tensor/shape.h"

namespace crema {

// Intersection over union of two boxes; dx, dy: distance of the centres.
template <typename T>
CREMA_HD T overlap_of(T dx, T dy, T w1, T h1, T w2, T h2) {
  const auto shared = [](T distance, T a, T b) {
    const T far = distance < 0 ? -distance : distance, smaller = a < b ? a : b;
    const T length = (a + b) / 2 - far;
    return length < 0 ? T(0) : length < smaller ? length : smaller;
  };
  const T both = shared(dx, w1, w2) * shared(dy, h1, h2);
  return both / (w1 * h1 + w2 * h2 - both);
}

// Rows of class, x, y, width, height relative to the image; the first row with x = 0 ends them.
template <typename T>
struct Objects {
  const T* rows;
  int64_t each;  // per image
  CREMA_HD const T* row(int64_t image, int64_t t) const { return rows + (image * each + t) * 5; }
  CREMA_HD bool ends(int64_t image, int64_t t) const { return t == each || row(image, t)[1] == 0; }
};

// The number of a row's first coordinate that cannot be relative to the image, 1 to 4; 0: none. Boxes may
// cross the border.
template <typename T>
CREMA_HD int wrong_coordinate(const T* row) {
  for (int k = 1; k < 5; ++k) {
    const bool good = k < 3 ? row[k] >= T(-0.5) && row[k] <= T(1.5) : row[k] > 0 && row[k] <= 2;
    if (!good) return k;
  }
  return 0;
}

constexpr int kEndOfObjects = -2;  // value of belongs[object] after the last object of an image

constexpr int64_t kOfCoordinate = -1;

// belongs[object] = box of the scale * S * S + cell, or -1.
template <typename T>
struct Assign {
  Objects<T> objects;
  int64_t side, boxes;
  const T *sizes, *mask;  // sizes of all boxes, relative to the image; which ones the scale has
  int64_t all;
  LabelNote note;  // of an object with a wrong coordinate; its classes are kOfCoordinate
  T* belongs;
  CREMA_HD void operator()(int64_t object) const {
    const T* row = objects.rows + object * 5;
    bool beyond = false;
    for (int64_t t = object % objects.each; t >= 0 && !beyond; --t) beyond = row[1 - 5 * t] == 0;
    if (beyond) {
      belongs[object] = kEndOfObjects;
      return;
    }
    if (const int k = wrong_coordinate(row); k > 0) note.write(object, row[k]);
    int64_t best = -1;
    T maximum = 0;
    for (int64_t n = 0; n < all; ++n) {
      const T overlap = overlap_of(T(0), T(0), sizes[2 * n], sizes[2 * n + 1], row[3], row[4]);
      best = overlap > maximum ? n : best;
      maximum = overlap > maximum ? overlap : maximum;
    }
    int64_t box = -1;
    for (int64_t n = 0; n < boxes; ++n) box = static_cast<int64_t>(mask[n]) == best ? n : box;
    const auto column = static_cast<int64_t>(row[1] * static_cast<T>(side));
    const auto line = static_cast<int64_t>(row[2] * static_cast<T>(side));
    const bool inside = column >= 0 && column < side && line >= 0 && line < side;
    belongs[object] =
        box >= 0 && inside ? static_cast<T>((box * side + line) * side + column) : T(-1);
  }
};

// A box of a cell: centre and size relative to the image.
template <typename T>
struct CellBox {
  T x, y, width, height;
  CREMA_HD T overlap_with(const T* row) const {
    return overlap_of(x - row[1], y - row[2], width, height, row[3], row[4]);
  }
};

// What boxes need from the objects: the maximum overlap, and the last object that belongs to the
// box, or -1. Each index takes a part of an image's objects, so that few boxes keep a GPU busy.
// Boxes has box(image, position), position = box of the scale * S * S + cell.
template <typename T, typename Boxes>
struct Closest {
  Boxes boxes;
  Objects<T> objects;
  const T* belongs;
  int64_t images, positions, parts;  // positions: boxes of an image
  T *maximum, *last;                 // (parts, images, positions)
  CREMA_HD void operator()(int64_t index) const {
    const int64_t position = index % positions, image = index / positions % images;
    const int64_t part = index / positions / images, each = (objects.each + parts - 1) / parts;
    const int64_t first = part * each,
                  end = first + each < objects.each ? first + each : objects.each;
    const CellBox<T> box = boxes.box(image, position);
    T largest = 0;
    int64_t own = -1;
    for (int64_t t = first; t < end && belongs[image * objects.each + t] != kEndOfObjects; ++t) {
      const T overlap = box.overlap_with(objects.row(image, t));
      largest = overlap > largest ? overlap : largest;
      own = belongs[image * objects.each + t] == static_cast<T>(position) ? t : own;
    }
    maximum[index] = largest;
    last[index] = static_cast<T>(own);
  }
};

// Combines the parts of one box.
template <typename T>
struct ClosestObject {
  T maximum = 0;
  int64_t last = -1;
  CREMA_HD ClosestObject(const T* maxima, const T* last_indices, int64_t index, int64_t boxes,
                         int64_t parts) {
    for (int64_t part = 0; part < parts; ++part) {
      const T of_part = maxima[part * boxes + index], own = last_indices[part * boxes + index];
      maximum = of_part > maximum ? of_part : maximum;
      last = own >= 0 ? static_cast<int64_t>(own) : last;
    }
  }
};

// A GPU has many threads; on a CPU one part is fastest.
inline int64_t closest_parts(bool gpu) { return gpu ? 16 : 1; }

template <typename T>
struct Squares {
  const T* d;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    return d[i] * d[i];
  }
};

// Error if the second bottom has the wrong shape.
inline void check_object_rows(const Shape& objects, int64_t images) {
  require(objects.axes() > 0 && objects[0] == images && objects.count() % (5 * images) == 0,
          "the second bottom must have rows of 5 values (class, x, y, width, height) for each of ",
          images, " images, but is ", objects.brief());
}

[[noreturn]] inline void fail_for_coordinate(int64_t object, int64_t each, double value,
                                             const std::string& when = "") {
  fail("object ", object % each, " of image ", object / each, " of the batch", when,
       " has the coordinate ", value,
       ", but x, y, width and height are relative to the image, from 0 "
       "to 1, so it belongs to no cell; divide pixels by the width and the height of the image");
}

// Error for an object whose class or box is out of range. On the CPU.
template <typename T>
void check_objects(const Objects<T>& objects, int64_t images, int64_t classes) {
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t t = 0; !objects.ends(image, t); ++t) {
      const T* const row = objects.row(image, t);
      require(is_class(row[0], classes), "object ", t, " of image ", image,
              " of the batch has the class ", row[0], ", but num_class is ", classes);
      if (const int k = wrong_coordinate(row); k > 0)
        fail_for_coordinate(image * objects.each + t, objects.each, static_cast<double>(row[k]));
    }
  }
}

// The same for errors that a GPU has recorded.
inline void check_object_note(Context& context, const Tensor& note) {
  const std::optional<NotedLabel> bad = take_label_note(context, note);
  if (!bad) return;
  if (bad->classes == kOfCoordinate)
    fail_for_coordinate(bad->position, bad->each, bad->label, when_noted(*bad));
  fail_for_label(bad->position, bad->label, bad->classes, bad->each, when_noted(*bad));
}

}  // namespace crema
