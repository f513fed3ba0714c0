"""``python -m deploy`` writes the generated files."""

from pathlib import Path

from deploy.generate import files

HERE = Path(__file__).parent


def main() -> None:
    """Write what is made, and remove what is not made any more."""
    made = files()
    for folder in ("crds", "chart"):
        for old in (HERE / folder).rglob("*"):
            if old.is_file() and str(old.relative_to(HERE)) not in made:
                old.unlink()
    for path, text in made.items():
        (HERE / path).parent.mkdir(parents=True, exist_ok=True)
        (HERE / path).write_text(text)


if __name__ == "__main__":
    main()
