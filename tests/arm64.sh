#!/usr/bin/env bash
# The suite on arm64: compiled by Debian's cross compiler, run by qemu-user. That shows whether the code is right there, but not how
# fast it is.
#   arm64.sh [flags of ctest]      for example: arm64.sh -R 'base|tensor'
# The processor is a Cortex-A72; QEMU_CPU=max is one with everything that the emulator knows, such as SVE.
# Needs Debian and root. Nothing on the system changes but packages that are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "arm64.sh: $*" >&2; exit 1; }

if [ "${1-}" != --mapped ] && [ "${1-}" != --within ]; then
  [ "$(id -u)" -eq 0 ] || die "only root may set up the emulator"
  bash data_scripts/setup.sh --tests
  tools=(g++-aarch64-linux-gnu qemu-user-static)
  dpkg-query -W "${tools[@]}" >/dev/null 2>&1 || apt-get install -qq -y --no-install-recommends "${tools[@]}" >/dev/null
fi

# The libraries, in a folder of their own, because many development packages cannot be installed for two processors.
root=$PWD/build/arm64-sysroot
mapfile -t packages < <(sed 's/#.*//; /packages+*=(/,/)/!d' data_scripts/setup.sh | grep -oE '\b[a-z0-9-]+-dev\b' | grep -v '^py')
packages+=(libc6 libstdc++6 libgomp1)
if [ "$(cat "$root/PACKAGES" 2>/dev/null)" != "${packages[*]}" ]; then
  suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || die "the libraries for arm64 come from Debian's archive"
  rm -rf -- "$root"
  mkdir -p "$root"/usr/lib
  ln -s usr/lib "$root/lib"
  apt=$(mktemp -d)
  trap 'rm -rf -- "$apt"' EXIT
  mkdir -p "$apt"/lists/partial "$apt"/archives/partial
  touch "$apt/status"
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$key] http://deb.debian.org/debian $suite main" >"$apt/sources"
  cat >"$apt/conf" <<END
APT { Architecture "arm64"; Architectures { "arm64"; }; Install-Recommends "false"; Sandbox::User "root"; };
Dir { State "$apt"; State::status "$apt/status"; Cache "$apt"; };
Dir::Etc { SourceList "$apt/sources"; SourceParts "/dev/null"; PreferencesParts "/dev/null"; };
END
  { APT_CONFIG=$apt/conf apt-get update && APT_CONFIG=$apt/conf apt-get install -y --download-only "${packages[@]}"; } >"$apt/log" 2>&1 ||
    die "apt-get cannot get the packages for arm64: $(tail -n 5 "$apt/log")"
  for package in "$apt"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$root"
  done
  # Only the libraries and their headers stay.
  find "$root" -mindepth 1 -maxdepth 1 ! -name usr ! -name lib -exec rm -rf -- {} +
  find "$root/usr" -mindepth 1 -maxdepth 1 ! -name lib ! -name include ! -name share -exec rm -rf -- {} +
  find "$root/usr/share" -mindepth 1 -maxdepth 1 ! -name pkgconfig ! -name cmake -exec rm -rf -- {} +
  # What the packages' scripts would do: these two libraries are alternatives. Absolute links would lead out of the folder.
  libraries=$root/usr/lib/aarch64-linux-gnu
  ln -s blas/libblas.so.3 lapack/liblapack.so.3 "$libraries"
  find "$root" -type l -lname '/*' | while read -r link; do ln -sfnr "$root$(readlink "$link")" "$link"; done
  # Some are where those of this machine would hide them.
  find "$root/usr/lib" -maxdepth 1 -name 'lib*.so*' -exec mv -t "$libraries" {} +
  echo "${packages[*]}" >"$root/PACKAGES"
fi

# The kernel starts arm64 programs with the emulator, also those that a test or a script starts, and they find their libraries in
# /usr/lib. Both hold in a namespace, for the processes of this script only (Linux 6.7).
case ${1-} in
  --mapped)
    # Without a user number exec loses root's rights, so the script starts once more when it has one.
    until grep -q . /proc/self/uid_map && grep -q . /proc/self/gid_map; do sleep 0.01; done
    exec bash tests/arm64.sh --within "${@:2}" ;;
  --within)
    shift
    mount -t overlay overlay -o "lowerdir=/usr/lib:$root/usr/lib" /usr/lib || die "overlays cannot be mounted in a namespace"
    if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
      mount -t binfmt_misc none /proc/sys/fs/binfmt_misc || die "this kernel needs apt-get install binfmt-support"
      elf='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
      mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
      printf '%s' ":qemu-aarch64:M::$elf:$mask:$(command -v qemu-aarch64-static):F" >/proc/sys/fs/binfmt_misc/register
    fi ;;
  *)
    unshare --user --mount bash tests/arm64.sh --mapped "$@" &
    child=$!
    while [ "$(readlink "/proc/$child/ns/user")" = "$(readlink /proc/self/ns/user)" ]; do sleep 0.01; done
    for map in uid_map gid_map; do
      echo "0 0 4294967295" >"/proc/$child/$map" || { kill "$child"; die "this system allows no namespaces"; }
    done
    status=0
    wait "$child" || status=$?
    exit "$status" ;;
esac

cmake --preset arm64
cmake --build --preset arm64
export QEMU_CPU=${QEMU_CPU:-cortex-a72} OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
ctest --preset arm64 -j "$(nproc)" "$@"
