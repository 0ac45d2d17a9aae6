"""Calls: every verb of a gallery as a request, with its arguments checked and its answer typed."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

import numpy as np

from holue.client.answers import identifications_of
from holue.client.call import Call
from holue.client.embeddings import as_kappa, as_rows, media_type, packed, samples_of
from holue.client.files import Files, packed_files
from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError, InvalidSubjectsError
from holue.gallery.subjects import UNKNOWN
from holue.recognition.answer.identifications import Identifications
from holue.store.values import UNCHANGED, Enrolled, Receipt, Searched, Subject, SubjectId, Unchanged

Page = tuple[list[dict[str, Any]], str | None]
"""Entries of a list, and the cursor of the next page."""
LARGEST_PAGE = 1000


class Calls:
    """The requests about one gallery."""

    def __init__(self, gallery: str) -> None:
        self._base = f"/v1/galleries/{quote(gallery, safe='')}"
        self._gallery = gallery

    # Reading

    def status(self) -> Call[dict[str, Any]]:
        """The gallery in numbers."""
        return Call("GET", self._base, dict)

    def subjects(self, cursor: str | None = None, limit: int = 100) -> Call[tuple[list[Subject], str | None]]:
        """Enrolled subjects, a page at a time, and the cursor of the next page."""
        params = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
        return Call(
            "GET", f"{self._base}/subjects", lambda found: ([_subject(one) for one in found["subjects"]], found["next"]),
            params=params,
        )  # fmt: skip

    def subject(self, subject: SubjectId) -> Call[Subject]:
        """The subject enrolled under an id; an error where there is none."""
        return Call("GET", self._of(subject), _subject)

    def samples(self, subject: SubjectId) -> Call[Page]:
        """The samples of a subject; embeddings do not leave the service."""
        return _pages(f"{self._of(subject)}/samples", "samples")

    def changes(self, cursor: str | None = None, limit: int = 100) -> Call[tuple[list[dict[str, Any]], str | None]]:
        """What changed since a cursor, oldest first, and the cursor to go on from."""
        params = {"gallery": self._gallery, "limit": limit} | ({} if cursor is None else {"cursor": cursor})
        return Call("GET", "/v1/events", lambda found: (list(found["events"]), found["next"]), params=params)

    def identify(
        self, X: object, concentration: object = None, *, top_k: int = 5, model: str | None = None
    ) -> Call[Identifications]:
        """The whole answer about each probe, as :meth:`holue.live.live_gallery.LiveGallery.identify` gives it."""
        documents = self.identify_documents(X, concentration, top_k=top_k, model=model)
        return Call(
            documents.method, documents.path, lambda found: identifications_of(documents.read(found)), documents.json,
            documents.content, documents.params, documents.headers,
        )  # fmt: skip

    def identify_documents(
        self, X: object, concentration: object = None, *, top_k: int = 5, model: str | None = None
    ) -> Call[list[dict[str, Any]]]:
        """The same as documents, with the risk, the request and the review that belong to each answer."""
        rows, kappa = as_rows(X), as_kappa(concentration)
        n, dim = rows.shape
        path = f"{self._base}/identify"

        def read(found: Any) -> list[dict[str, Any]]:
            answers = list(found["answers"])
            if len(answers) != n:  # raw rows carry no length: the service cut the bytes at the gallery's dimension
                raise InvalidEmbeddingsError(
                    f"{n} probes of {dim} numbers were sent and {len(answers)} came back answered: the gallery's embeddings "
                    "have another dimension; embed with the model that the gallery was created for"
                )
            return answers

        given: dict[str, Any] = {"top_k": top_k} | ({} if model is None else {"model": model})
        if kappa is not None:
            if len(kappa) != len(rows):
                raise InvalidConcentrationError(
                    f"there are {len(kappa)} concentrations for {len(rows)} probes; give one each"
                )
            joined = np.column_stack([rows, kappa.astype(rows.dtype)])
            if not (joined[:, -1].astype(np.float64) == kappa).all():  # float32 cannot hold these numbers exactly
                body = {"probes": rows.tolist(), "concentration": kappa.tolist(), **given}
                return Call("POST", path, read, json=body)
            rows, given["concentration"] = joined, "last"
        return Call("POST", path, read, content=packed(rows), params=given, headers={"Content-Type": media_type(rows)})

    def identify_files(
        self, files: Files, *, face: str | int | Sequence[str | int] | None = None, top_k: int = 5
    ) -> Call[list[dict[str, Any]]]:
        """The answers about photographs, images or recordings, by a service that has an embedder, as documents.

        ``files`` are paths or contents: one, several, or by name; files of one name are samples of one probe. There is an answer
        for each name in their order, or, where the service finds faces, for each face; ``faces`` says which. ``face`` is the one
        that is meant: a number from the left, ``largest`` or ``central``, once or for each file.
        """
        content, headers = packed_files(files, face)
        return Call(
            "POST", f"{self._base}/identify", lambda found: list(found["answers"]), content=content,
            params={"top_k": top_k}, headers=headers,
        )  # fmt: skip

    def verify(self, subject: SubjectId, probe: object, concentration: float | None = None) -> Call[dict[str, Any]]:
        """Whether one probe shows a subject."""
        body = {"subject": _id(subject), "probe": as_rows([probe])[0].tolist()}
        given = {} if concentration is None else {"concentration": float(concentration)}
        return Call("POST", f"{self._base}/verify", dict, json=body | given)

    # Changing

    def enroll(
        self,
        X: object,
        ids: Iterable[SubjectId],
        *,
        concentration: object = None,
        medium: str | Sequence[str] = "",
        origin: str | Sequence[str | None] | None = None,
        metadata: Mapping[SubjectId, Mapping[str, Any]] | None = None,
        retain_until: float | Mapping[SubjectId, float] | None = None,
        consent: str | Mapping[SubjectId, str] | None = None,
        purpose: str | Mapping[SubjectId, str] | None = None,
        model: str | None = None,
    ) -> Call[Enrolled]:
        """Enrol new subjects, all or nothing; the fields are those of :meth:`holue.store.protocol.Store.enroll`.

        The result is in the order of the rows that were given.
        """
        samples, names = samples_of(X, concentration, medium, origin), [_id(each) for each in ids]
        if len(names) != len(samples):
            raise InvalidSubjectsError(f"there are {len(names)} ids for {len(samples)} samples; give one each")
        order: dict[SubjectId, list[int]] = {}
        for row, name in enumerate(names):
            order.setdefault(name, []).append(row)
        about = {"retain_until": retain_until, "consent": consent, "purpose": purpose}
        subjects = [
            {
                "id": name, "samples": [samples[row] for row in rows],
                **({"metadata": dict(metadata[name])} if metadata and name in metadata else {}),
                **{key: value for key, given in about.items() if (value := _own(given, name)) is not None},
            }
            for name, rows in order.items()
        ]  # fmt: skip
        sent = [row for rows in order.values() for row in rows]
        return Call(
            "POST", f"{self._base}/subjects", lambda found: _enrolled(found, sent),
            json={"subjects": subjects, "model": model}, headers=_once(),
        )  # fmt: skip

    def add_samples(
        self,
        X: object,
        subject: SubjectId,
        *,
        concentration: object = None,
        medium: str | Sequence[str] = "",
        origin: str | Sequence[str | None] | None = None,
        model: str | None = None,
    ) -> Call[Enrolled]:
        """Give one enrolled subject more samples, all or nothing."""
        body = {"samples": samples_of(X, concentration, medium, origin), "model": model}
        return Call("POST", f"{self._of(subject)}/samples", _enrolled, json=body, headers=_once())

    def enroll_files(
        self, subject: SubjectId, files: Files, *, face: str | int | Sequence[str | int] | None = None
    ) -> Call[Enrolled]:
        """Enrol a subject from photographs, images or recordings, or give an enrolled one more of them.

        The name of a file becomes the origin of its samples. A photograph shows one face, or ``face`` says which is meant.
        """
        content, headers = packed_files(files, face)
        return Call("POST", f"{self._of(subject)}/files", _enrolled, content=content, headers=headers | _once())

    def replace(
        self,
        X: object,
        subject: SubjectId,
        *,
        concentration: object = None,
        medium: str | Sequence[str] = "",
        origin: str | Sequence[str | None] | None = None,
        model: str | None = None,
    ) -> Call[Enrolled]:
        """Give one enrolled subject new samples in place of all it had."""
        body = {"samples": samples_of(X, concentration, medium, origin), "model": model}
        return Call("PUT", f"{self._of(subject)}/samples", _enrolled, json=body)

    def remove_sample(self, subject: SubjectId, sample: int) -> Call[int]:
        """A sample leaves, by its number; the subject keeps at least one."""
        return Call("DELETE", f"{self._of(subject)}/samples/{int(sample)}", _version)

    def remove(self, subject: SubjectId) -> Call[int]:
        """A subject leaves; :meth:`undo` brings it back until it is erased. Returns the version."""
        return Call("DELETE", self._of(subject), _version)

    def rename(self, old: SubjectId, new: SubjectId) -> Call[int]:
        """A subject gets another id and keeps its number."""
        return Call("PATCH", self._of(old), _version, json={"id": _id(new)})

    def update(
        self,
        subject: SubjectId,
        *,
        metadata: Mapping[str, Any] | Unchanged = UNCHANGED,
        retain_until: float | Unchanged | None = UNCHANGED,
        consent: str | Unchanged | None = UNCHANGED,
        purpose: str | Unchanged | None = UNCHANGED,
    ) -> Call[int]:
        """Change what is said about a subject; a field that is not given stays."""
        given = {"metadata": metadata, "retain_until": retain_until, "consent": consent, "purpose": purpose}
        body = {name: value for name, value in given.items() if not isinstance(value, Unchanged)}
        return Call("PATCH", self._of(subject), _version, json=body)

    def merge(self, ids: Iterable[SubjectId], *, into: SubjectId) -> Call[int]:
        """Subjects turn out to be one: all samples go to ``into``, and the others leave."""
        return Call(
            "POST", f"{self._of(into)}/merge", _version, json={"subjects": [_id(each) for each in ids]}, headers=_once()
        )

    def split(self, old: SubjectId, samples: Iterable[int], *, new: SubjectId) -> Call[int]:
        """A subject turns out to be two: some samples, by number, go to a new subject."""
        body = {"samples": [int(sample) for sample in samples], "new": _id(new)}
        return Call("POST", f"{self._of(old)}/split", _version, json=body, headers=_once())

    def undo(self, version: int) -> Call[int]:
        """Put back everything that a change touched."""
        operation = quote(f"{self._gallery}.{int(version)}", safe="")
        return Call("POST", f"/v1/operations/{operation}/undo", _version, headers=_once())

    def erase(self, ids: Iterable[SubjectId] = (), *, numbers: Iterable[int] = ()) -> Call[Receipt]:
        """Erase subjects for good; the receipt says which files were searched."""
        body = {
            "gallery": self._gallery, "subjects": [_id(each) for each in ids], "numbers": [int(each) for each in numbers],
        }  # fmt: skip
        return Call("POST", "/v1/erasures", _receipt, json=body, headers=_once())

    def purge(self, *, dry_run: bool = False) -> Call[tuple[list[int], Receipt | None]]:
        """Erase the subjects whose ``retain_until`` has come; a dry run only lists their numbers."""
        return Call(
            "POST", f"{self._base}/purge",
            lambda found: (list(found["numbers"]), None if found["erasure"] is None else _receipt(found["erasure"])),
            json={"dry_run": dry_run}, headers=_once(),
        )  # fmt: skip

    def change_settings(self, /, **given: Any) -> Call[dict[str, Any]]:
        """Change settings, such as ``filter_below``; None goes back to the default. Returns the gallery in numbers."""
        return Call("PATCH", self._base, dict, json=given)

    # Upkeep

    def calibrations(self) -> Call[Page]:
        """All calibrations, each with its state and whether it fits the gallery as it is now."""
        return _pages(f"{self._base}/calibrations", "calibrations")

    def expected_errors(self) -> Call[dict[str, Any]]:
        """Error rates at the gallery's size, and what filtering would leave, by the enrolled samples, each left out in turn."""
        return Call("GET", f"{self._base}/expected-errors", dict)

    def snapshots(self) -> Call[Page]:
        """All snapshots of the gallery, each with its name."""
        return _pages(f"{self._base}/snapshots", "snapshots")

    def preview(
        self, number: int, X: object = None, y: Iterable[Any] | None = None, concentration: object = None
    ) -> Call[dict[str, Any]]:
        """What would change if a calibration answered, on the enrolled samples or on labelled probes."""
        body = {"source": "gallery"} if X is None else _labelled(X, y, concentration)
        return Call("POST", f"{self._base}/calibrations/{int(number)}/preview", dict, json=body)

    def calibrate(
        self, X: object = None, y: Iterable[Any] | None = None, concentration: object = None, *, activate: bool = True
    ) -> Call[dict[str, Any]]:
        """Calibrate on labelled probes, or on the enrolled samples, each left out in turn; UNKNOWN and None are strangers.

        Labelled probes travel as float32.
        """
        body = {"source": "gallery"} if X is None else _labelled(X, y, concentration)
        path = "calibrate" if activate else "calibrations"
        return Call("POST", f"{self._base}/{path}", dict, json=body, headers=_once())

    def certify(
        self,
        number: int,
        X: object = None,
        y: Iterable[Any] | None = None,
        concentration: object = None,
        *,
        risk: str = "error",
        target_level: float = 0.01,
        confidence_level: float = 0.95,
        unit: str = "probe",
        subject: Iterable[SubjectId] | None = None,
    ) -> Call[dict[str, Any]]:
        """Certify a risk of a calibration on labelled probes, or on what reviewers decided; the result is a candidate."""
        body: dict[str, Any] = {
            "risk": risk, "target": target_level, "confidence": confidence_level, "unit": unit,
            **({"source": "reviews"} if X is None else _labelled(X, y, concentration)),
        }  # fmt: skip
        if subject is not None:
            body["people"] = [_id(each) for each in subject]
        return Call("POST", f"{self._base}/calibrations/{int(number)}/certify", dict, json=body, headers=_once())

    def activate(self, number: int) -> Call[dict[str, Any]]:
        """From now on this calibration answers."""
        return Call("POST", f"{self._base}/calibrations/{int(number)}/activate", dict, headers=_once())

    def audit(self, *, target_fpir: float | None = None) -> Call[dict[str, Any]]:
        """What is wrong with the gallery: who is enrolled twice, or under a wrong name."""
        body = {} if target_fpir is None else {"target_fpir": target_fpir}
        return Call("POST", f"{self._base}/audit", lambda found: dict(found["report"]), json=body)

    def snapshot(self, name: str | None = None) -> Call[str]:
        """A copy of the gallery in its home; returns the name."""
        body = {} if name is None else {"name": name}
        return Call("POST", f"{self._base}/snapshots", lambda found: str(found["name"]), json=body, headers=_once())

    def _of(self, subject: SubjectId) -> str:
        if not isinstance(subject, str | int | np.integer):
            raise InvalidSubjectsError(f"one subject at a time, by its id, got {type(subject).__name__} {subject!r}")
        return f"{self._base}/subjects/{quote(str(subject), safe='')}"


def _pages(path: str, name: str) -> Call[Page]:
    """The first page of a list; :meth:`Call.after` asks for the others."""
    return Call("GET", path, lambda found: (list(found[name]), found["next"]), params={"limit": LARGEST_PAGE})


def _labelled(X: object, y: Iterable[Any] | None, concentration: object) -> dict[str, Any]:
    names = [None if each is None or each is UNKNOWN else _id(each) for each in (y if y is not None else [])]
    kappa = as_kappa(concentration)
    return {
        "source": "probes", "probes": as_rows(X).tolist(), "subjects": names,
        "concentration": None if kappa is None else kappa.tolist(),
    }  # fmt: skip


def _once() -> dict[str, str]:
    """A name for a change, so that sending it again after a lost connection does not make it twice."""
    return {"Idempotency-Key": secrets.token_hex(16)}


def _id(subject: Any) -> SubjectId:
    return cast("SubjectId", subject.item() if isinstance(subject, np.generic) else subject)


def _own(given: Any, name: SubjectId) -> Any:
    return given.get(name) if isinstance(given, Mapping) else given


def _subject(found: Any) -> Subject:
    return Subject(**{name: found[name] for name in Subject.__dataclass_fields__})


def _version(found: Any) -> int:
    return int(found["version"])


def _enrolled(found: Any, sent: Sequence[int] | None = None) -> Enrolled:
    """What was enrolled, in the order of the caller's rows; ``sent`` is the order in which they travelled."""
    subjects, samples = (np.array(found[name], np.int64) for name in ("subjects", "samples"))
    if sent is not None:
        back = np.argsort(np.array(sent, np.int64), kind="stable")
        subjects, samples = subjects[back], samples[back]
    return Enrolled(_version(found), subjects, samples)


def _receipt(found: Any) -> Receipt:
    return Receipt(
        found["number"], found["version"], found["time"], found["salt"], tuple(found["digests"]), found["samples"],
        found["compared"], tuple(Searched(**file) for file in found["files"]), tuple(found["not_searched"]),
    )  # fmt: skip
