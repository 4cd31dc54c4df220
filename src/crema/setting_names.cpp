#include "crema/setting_names.h"

#include <atomic>

namespace crema {

namespace {

constexpr SettingNames kCxx = {"assume",          "assume = \"",     "\"",       "pictures.",
                               "pictures.resize", "pictures.labels", "reshape()"};
constexpr SettingNames kC = {"assume",         "assume = \"",    "\"", "options.", "options.resize",
                             "options.labels", "crema_reshape()"};
constexpr SettingNames kFlags = {"-assume",      "-assume ", "", "-", "-resize WIDTHxHEIGHT",
                                 "-labels FILE", "-assume"};

std::atomic<const SettingNames*> chosen = &kCxx;

}  // namespace

void name_settings(SettingStyle style) {
  chosen = style == SettingStyle::flags ? &kFlags : style == SettingStyle::c ? &kC : &kCxx;
}

const SettingNames& setting_names() { return *chosen; }

}  // namespace crema
