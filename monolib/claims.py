"""Claims of the paper with their verdicts: what the paper says, what came out here, at which size."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from monolib.atomic_files import write_text
from monolib.errors import UserError

NOT_RUN = "not run at this size"
VERDICTS = ("reproduced", "partly", "not reproduced", NOT_RUN)


@dataclass(frozen=True)
class Claim:
    """One row: `id` (F1.a, ...), the claim, the paper's numbers, ours, the size they were computed at, the verdict."""

    id: str
    claim: str
    paper: str
    here: str
    size: str
    verdict: str

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict={self.verdict!r}: must be one of {', '.join(VERDICTS)}")


def verdict(conditions: Sequence[bool], partly_from: int = 1) -> str:
    """reproduced when all conditions hold, partly when at least `partly_from` do, else not reproduced."""
    met = sum(conditions)
    return "reproduced" if met == len(conditions) else "partly" if met >= partly_from else "not reproduced"


def write_claims(path: Path, claims: Iterable[Claim]) -> None:
    """Write claims as JSON, whole or not at all."""
    write_text(path, json.dumps([asdict(claim) for claim in claims], indent=1, ensure_ascii=False) + "\n")


def read_claims(path: Path) -> list[Claim]:
    """Claims of one file. Raises UserError that names the file when it is not what `write_claims` wrote."""
    try:
        claims = [Claim(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
        if not all(isinstance(value, str) for claim in claims for value in asdict(claim).values()):
            raise ValueError("a field is no text")
        return claims
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: not a claims file ({error})") from error


def collect_claims(results: Path) -> list[tuple[str, Claim]]:
    """(profile, claim) of every `<profile>/<figure>/claims.json` under `results`; paper size first, then by name."""
    files = sorted(results.glob("*/*/claims.json"), key=lambda f: (f.parts[-3] != "paper", f.parts[-3:]))
    return [(file.parts[-3], claim) for file in files for claim in read_claims(file)]


def format_claims(rows: Sequence[tuple[str, Claim]], style: str) -> str:
    """The verdict table as "text", "markdown" or "json"; columns profile, id, claim, paper, here, size, verdict."""
    if style == "json":
        entries = [{"profile": profile, **asdict(claim)} for profile, claim in rows]
        return json.dumps(entries, indent=1, ensure_ascii=False)
    if style == "markdown":
        lines = ["| profile | id | claim | paper | here | size | verdict |", "|---|---|---|---|---|---|---|"]
        for profile, c in rows:
            cells = [profile, c.id, c.claim, c.paper, c.here, c.size, f"**{c.verdict}**"]
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
        return "\n".join(lines)
    return "\n\n".join(_block(profile, claim) for profile, claim in rows)


def _block(profile: str, claim: Claim) -> str:
    lines = {"paper": claim.paper, "here": claim.here, "size": f"{profile}: {claim.size}", "verdict": claim.verdict}
    return "\n".join([f"{claim.id}  {claim.claim}", *(f"  {name:8s} {text}" for name, text in lines.items())])
