// A library as device/gpu_libraries.h loads them; the build makes two of one name.
extern "C" int crema_fake_number() { return CREMA_FAKE; }
