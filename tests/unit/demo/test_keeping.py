import struct
import subprocess
from pathlib import Path

from demo.keeping import octal


def test_the_printed_command_slows_the_disk_as_the_demo_does(tmp_path: Path) -> None:
    control = tmp_path / "control"
    control.write_bytes(bytes(8))

    subprocess.run(["sh", "-c", f"printf '{octal(80)}' 1<> {control}"], check=True)

    assert struct.unpack("=ii", control.read_bytes()) == (80, 80)


def test_no_delay_is_written_as_zeros() -> None:
    assert octal(0) == r"\000" * 8
