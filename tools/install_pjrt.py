#!/usr/bin/env python3
"""Fetches what the PJRT backend is built and tested with into third_party/pjrt (not in git): the PJRT C API header and
a CPU plugin, by pinned version and SHA-256, through pip's configured package index.

    tools/install_pjrt.py              fetch what is missing
    tools/install_pjrt.py --tpu        the TPU plugin too, for `sfumato compile` (needs no TPU)
    tools/install_pjrt.py --optional   a failure is one line and exit code 0 (the backend stays a stub)

Header: sdist pypjrt 0.1.1, vendor/xla/pjrt/c/pjrt_c_api.h, PJRT API 0.114, Apache-2.0 (OpenXLA).
Plugin: wheel fastatomstruct-xla-cpu 2026.6.23, libpjrt_cpu.so, PJRT API 0.106, built from OpenXLA (x86-64 Linux).
TPU: wheel libtpu 0.0.52, libtpu.so, PJRT API 0.117 (x86-64 Linux).
"""
import hashlib
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "third_party" / "pjrt"

# requirement, more of pip's arguments, SHA-256 of the archive, the file in it, SHA-256 of the file
PARTS = [
    ("pypjrt==0.1.1", ["--no-binary", "pypjrt"],
     "e85e8fd382801726f9b8d1348deeebe5fb3aab35e95147c09d693cc701190dec",
     "pypjrt-0.1.1/vendor/xla/pjrt/c/pjrt_c_api.h",
     "a38827698466b7ac81b2402ad144d027a8566714d94d649fba74a37be464ece4"),
    ("fastatomstruct-xla-cpu==2026.6.23", ["--only-binary", ":all:"],
     "88b1c430b341b4bea40a37420311c9c75db6e22b46d2ff95b6986577bee6afe9",
     "fastatomstruct_xla_cpu/libpjrt_cpu.so",
     "0a0fe56ca17be9efc7b942e89e534e5e0ad4a0f1e369b66d27b62184509015b9"),
]


TPU = ("libtpu==0.0.52", ["--only-binary", ":all:", "--python-version", "311", "--platform", "manylinux_2_31_x86_64"],
       "f5e2e596eaea9357fbb5a6755a7a9007c6ab75bfde4a55191b03eff402971140",
       "libtpu/libtpu.so",
       "f86de4d04a058e6b5101f73e0824b95f27e2cec996d2b9191d9cffda75c03077")


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def expect(path, wanted):
    if (got := sha256(path)) != wanted:
        raise RuntimeError(f"{path.name}: expected SHA-256 {wanted}, got {got}")


def read_member(archive, member):
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as package:
            return package.read(member)
    with tarfile.open(archive) as package:
        return package.extractfile(member).read()


def install(requirement, arguments, archive_hash, member, member_hash):
    target = FOLDER / pathlib.PurePath(member).name
    if target.exists() and sha256(target) == member_hash:
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--dest", folder, *arguments, requirement]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            raise RuntimeError(f"pip download {requirement}: {lines[-1] if lines else 'failed'}")
        archive = next(pathlib.Path(folder).iterdir())
        expect(archive, archive_hash)
        part = target.with_suffix(".part")
        part.write_bytes(read_member(archive, member))
        expect(part, member_hash)
        part.rename(target)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        for part in PARTS + ([TPU] if "--tpu" in sys.argv[1:] else []):
            install(*part)
    except (RuntimeError, OSError, KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
        print(f"install_pjrt: {error}; without the header the PJRT backend is a stub; tests without their plugin are skipped",
              file=sys.stderr)
        return 0 if "--optional" in sys.argv[1:] else 1
    plugins = "CPU and TPU plugins" if "--tpu" in sys.argv[1:] else "CPU plugin"
    print(f"install_pjrt: header and {plugins} are in {FOLDER.relative_to(FOLDER.parent.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
