#!/usr/bin/env bash
# bundle.sh [FOLDER] [BUILD-FOLDER]: put what it takes to train into FOLDER (build/bundle), which may
# then be moved: to another x86-64 Linux with glibc 2.36 or newer, an AVX2 processor, and for GPUs
# the CUDA 13 driver and toolkit libraries (cuBLAS, cuDNN, NCCL).
#
#   redspine, mpirun   start these; they find the rest beside them
#   gpu_check.sh       what to run first on a machine with a GPU
#   bin lib            programs, and their shared libraries except glibc's
#   configs tokens     configurations, and a small token file to try them on
#
# Without BUILD-FOLDER it builds the preset cuda-release for x86-64-v3. One without CUDA, which has
# been built, gives a bundle with the CUDA backend on the host, for tests. At most 40 MiB, or it fails.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
[ $# -le 2 ] || { echo "bundle.sh: at most FOLDER and BUILD-FOLDER, not $*" >&2; exit 2; }
bundle=$(readlink -m "${1:-$root/build/bundle}")
build=${2:-}
marker=$bundle/.redspine_bundle # nothing else of ours has a file of this name
if [ -e "$bundle" ] && [ ! -f "$marker" ]; then
  echo "bundle.sh: $bundle is there and is no bundle; legal: a new folder, or one made before" >&2
  exit 2
fi
max_kib=$((40 * 1024))

needed=(bundle)
[ -n "$build" ] || needed+=(build test)
"$root/launch/install.sh" "${needed[@]}"
if [ -z "$build" ]; then
  build=$root/build/cuda-portable
  "$root/cmake/fetch_cudnn_frontend.sh" "$build" ||
    echo "bundle.sh: without cuDNN's headers attention is by kernels of our own" >&2
  cmake -S "$root" --preset cuda-release -B "$build" -DREDSPINE_PORTABLE=ON -DREDSPINE_TESTS=ON
  cmake --build "$build" --target bundle_programs
fi
rm -rf "$bundle"
mkdir -p "$bundle"
: >"$marker"
mkdir -p "$bundle"/{bin,lib/openmpi,lib/pmix,share}

# The list that the build wrote: the program, and the comparison of the backends' kernels.
mapfile -t programs <"$build/bundle_programs.txt"
for program in "${programs[@]}"; do install "$program" "$bundle/bin/"; done
[ ! -f "$bundle/bin/redspine_on_host" ] || mv "$bundle/bin/redspine_on_host" "$bundle/bin/redspine"
# orted serves a rank that no mpirun started.
for program in mpirun orted; do cp -L "$(command -v $program)" "$bundle/bin/"; done

# Open MPI's components for ranks on one host. Those of networks depend on a machine's drivers.
openmpi=$(ompi_info --path pkglibdir --parsable | cut -d: -f3-)
for component in "$openmpi"/mca_*.so; do
  case $(basename "$component") in
    *ofi* | *openib* | *psm* | *ucx* | *monitoring* | *memheap* | *sshmem* | *scoll* | *spml* | \
      *atomic* | *usnic* | *fbtl* | *fcoll* | *sharedfp* | *io_ompio* | *fs_* | *netlink*) ;;
    *) cp "$component" "$bundle/lib/openmpi/" ;;
  esac
done
cp -r "$(ompi_info --path pkgdatadir --parsable | cut -d: -f3-)" "$bundle/share/openmpi"
find "$bundle/share/openmpi" -type f ! -name 'help-*.txt' -delete

# What these are linked with, but for glibc, which is the other machine's: a line "NAME => PATH" each.
# CUDA's libraries are not among it: they are opened when they are needed.
needs=$(ldd "$bundle"/bin/* "$bundle"/lib/openmpi/*.so)
needs=$(grep ' => ' <<<"$needs" | sed 's/^[[:space:]]*//; s/ (0x.*//' | sort -u |
  grep -vE '^(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv)\.so')
if grep 'not found' <<<"$needs" >&2; then
  echo "bundle.sh: these libraries are needed and not here" >&2
  exit 1
fi
while read -r _ _ library _; do cp -L "$library" "$bundle/lib/"; done <<<"$needs"
pmix=$(dirname "$(ldd "$bundle"/lib/openmpi/mca_pmix_ext*.so | awk '/libpmix/ {print $3}' | xargs readlink -f)")
cp "$pmix"/pmix/pmix_mca_*.so "$bundle/lib/pmix/"

# The stand-in of a GPU is linked with OpenBLAS; other programs open the machine's own for `bench` alone.
# Packed with its kernels for processors that have AVX2, and without LAPACK: a fifth of the size.
# Tables of other processors are there by name alone; none of them is chosen on such a machine.
openblas=$(dirname "$(ldd "${programs[0]}" | awk '/libopenblas/ {print $3}')")/libopenblas.a
if [ -f "$openblas" ]; then
  for processor in ATOM BARCELONA BOBCAT BULLDOZER CORE2 DUNNINGTON NANO NEHALEM OPTERON PENRYN \
    PILEDRIVER PRESCOTT SANDYBRIDGE STEAMROLLER; do
    echo "char gotoblas_$processor[8192];"
  done | gcc -O2 -fPIC -shared -o "$bundle/lib/libopenblas.so.0" -Wl,-soname,libopenblas.so.0 \
    -Wl,-u,cblas_sgemm,-u,openblas_get_config,-u,openblas_get_corename \
    -x c - -x none "$openblas" -fopenmp -lm
  rm -f "$bundle"/lib/libgfortran.so.* "$bundle"/lib/libquadmath.so.*
fi

strip "$bundle"/bin/* "$bundle"/lib/*.so* "$bundle"/lib/*/*.so
for file in "$bundle"/bin/*; do patchelf --set-rpath '$ORIGIN/../lib' "$file"; done
for file in "$bundle"/lib/*.so*; do patchelf --set-rpath '$ORIGIN' "$file"; done
for file in "$bundle"/lib/*/*.so; do patchelf --set-rpath '$ORIGIN/..' "$file"; done

# Both programs by one script under two names: it sets where Open MPI has been moved to.
cat >"$bundle/redspine" <<'SCRIPT'
#!/usr/bin/env bash
# Starts the program of this script's name in bin/, wherever the bundle lies.
bundle=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
export OPAL_PREFIX=$bundle OMPI_MCA_mca_base_component_path=$bundle/lib/openmpi
export PMIX_INSTALL_PREFIX=$bundle PMIX_MCA_mca_base_component_path=$bundle/lib/pmix
# The toolkit's libraries, where the machine's own search does not find them.
for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/cuda/targets/x86_64-linux/lib; do
  [ -d "$folder" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH
exec "$bundle/bin/$(basename "$0")" "$@"
SCRIPT
chmod +x "$bundle/redspine"
cp "$bundle/redspine" "$bundle/mpirun"
for program in "${programs[@]}"; do
  name=$(basename "$program")
  case $name in redspine*) ;; *) cp "$bundle/redspine" "$bundle/$name" ;; esac
done

cp -r "$root/configs" "$bundle/configs"
cp "$root/launch/gpu_check.sh" "$bundle/"
mkdir -p "$bundle/tokens"
cat "$root"/README.md "$root"/docs/*.md >"$bundle/tokens/text"
"$bundle/redspine" tokenize "$bundle/tokens/text" --tokenizer bytes --output "$bundle/tokens/tokens"
rm "$bundle/tokens/text"

kib=$(du -sk "$bundle" | cut -f1)
echo "$bundle: $kib KiB"
if [ "$kib" -gt "$max_kib" ]; then
  echo "bundle.sh: more than $max_kib KiB:" >&2
  find "$bundle" -type f -size +512k -printf '%k KiB %P\n' | sort -rn >&2
  exit 1
fi
