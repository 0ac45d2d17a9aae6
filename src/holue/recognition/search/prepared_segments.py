"""PreparedSegments: the codes or lists of segments, each made once, whichever version of the gallery asks.

Where nothing of a gallery is prepared yet (its first question), the question waits for it, if this way to read was asked for by
name. Later, and with "auto", a question uses what there is, reads other segments exactly, and has them prepared in the
background. Segments that are better merged are merged there too: the merged one takes their place once it is prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock, Thread
from weakref import WeakKeyDictionary, WeakSet

from holue.evidence.binary.bits_needed import Shares, shares_to_score
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Part, Segment, joined
from holue.recognition.search.choice import Choice, chosen
from holue.recognition.search.gallery_search import (
    GallerySearch,
    Prepared,
    as_of,
    check_kind,
    is_worth,
    prepare_segment,
)
from holue.recognition.search.search import SearchKind
from holue.recognition.search.search_report import SearchReport

Replace = Callable[[Sequence[Part], Segment], bool]
"""Puts one segment in the place of some parts; whether it could, since the gallery may have changed."""


class PreparedSegments:
    """Prepared forms by segment and kind of search; forgotten with the last version that has the segment."""

    def __init__(self) -> None:
        self._forms: WeakKeyDictionary[Segment, dict[SearchKind, Prepared]] = WeakKeyDictionary()
        self._shares: WeakKeyDictionary[Segment, Shares] = WeakKeyDictionary()
        self._last: GallerySearch | None = None
        self.forget_threads()

    def forget_threads(self) -> None:
        """Begin with locks that nobody holds, and nothing under way: in a forked child no other thread goes on."""
        # One preparation at a time: an index takes all processors, and much memory.
        self._preparing, self._starting = Lock(), Lock()
        self._background: Thread | None = None
        # What the background has taken up: once, or a failure would come back with every question.
        self._tried: WeakSet[Segment] = WeakSet()
        self._merged: WeakSet[Segment] = WeakSet()
        # Segments whose lists were of no use when they were made: a question that finds them so is refused.
        self._useless: WeakSet[Segment] = WeakSet()

    def search(
        self, kind: SearchKind, gallery: Gallery, merge: Replace, threshold: float | None = None
    ) -> GallerySearch:
        """How this version of the gallery is read now; ``merge`` is called where segments were merged in the background.

        Lists that have to be read in their majority at the ``threshold`` are refused where a question waits for them. Lists that
        are in use, or made in the background, are read as far as the threshold asks.
        """
        check_kind(kind)
        asked, choice = kind, self._chosen(kind, gallery)
        kind = choice.kind
        known = self._last
        if known is not None and (known.gallery is not gallery or known.kind != kind or known.threshold != threshold):
            known = None
        if known is not None and None not in known.prepared:
            return known
        wanted = [part.segment for part in gallery.parts if is_worth(kind, part, gallery)]
        missing = [segment for segment in wanted if self._known(kind, segment) is None]
        if missing and len(missing) == len(wanted) and asked != "auto":
            for segment in missing:
                self._prepare(kind, segment)
            if kind == "approximate":
                self._useless.update(missing)
        else:
            self._start(asked, gallery, missing, merge)
        if known is not None:
            pairs = zip(known.prepared, gallery.parts)
            if not any(form is None and self._known(kind, part.segment) for form, part in pairs):
                return known
        made = GallerySearch(
            kind, gallery, tuple(as_of(self._known(kind, part.segment), part) for part in gallery.parts), threshold
        )
        if kind == "approximate" and any(part.segment in self._useless for part in gallery.parts):
            made.report(choice, asked, threshold).refuse()
            self._useless.difference_update(part.segment for part in gallery.parts)
        for part, form in zip(gallery.parts, made.prepared):
            if form is not None:  # the next version differs from this one by little
                self._forms.setdefault(part.segment, {})[kind] = form
        self._last = made
        return made

    def report(self, asked: SearchKind, gallery: Gallery, threshold: float | None) -> SearchReport:
        """How a version would be read, as far as it is known without preparing anything."""
        choice, last = self._chosen(asked, gallery), self._last
        if last is None or last.kind != choice.kind:
            return SearchReport(asked, choice.kind, choice.reason, gallery.dim, threshold)
        return last.report(choice, asked, threshold)

    def wait(self) -> None:
        """Until what is under way in the background is done."""
        background = self._background
        if background is not None:
            background.join()

    @property
    def last(self) -> GallerySearch | None:
        """The last search, with all it was prepared from; :meth:`restore` begins with it."""
        return self._last

    def restore(self, last: GallerySearch | None) -> None:
        """Take over what another one had prepared."""
        self._last = last
        if last is None:
            return
        for part, form in zip(last.gallery.parts, last.prepared):
            if form is not None:
                self._forms.setdefault(part.segment, {})[last.kind] = form

    def _chosen(self, asked: SearchKind, gallery: Gallery) -> Choice:
        """The choice by what is known: of a gallery's rows, what was measured before."""
        return chosen(asked, gallery, shares=self._shares.get(_largest(gallery)))

    def _measured(self, asked: SearchKind, gallery: Gallery) -> SearchKind:
        """What is chosen once the rows are measured that the choice depends on."""
        kind, largest = self._chosen(asked, gallery).kind, _largest(gallery)
        if asked != "auto" or kind != "binary" or largest in self._shares or self._known(kind, largest) is not None:
            return kind
        self._shares[largest] = shares_to_score(largest.directions)
        return self._chosen(asked, gallery).kind

    def _known(self, kind: SearchKind, segment: Segment) -> Prepared | None:
        return self._forms.get(segment, {}).get(kind)

    def _prepare(self, kind: SearchKind, segment: Segment) -> None:
        with self._preparing:  # others wait here, and find it done; or try themselves where this thread fails
            if self._known(kind, segment) is None:
                form = prepare_segment(kind, segment)
                self._forms.setdefault(segment, {})[kind] = form

    def _start(self, asked: SearchKind, gallery: Gallery, missing: Sequence[Segment], merge: Replace) -> None:
        """Prepare and merge in the background what was not tried there before."""
        new = [segment for segment in missing if segment not in self._tried]
        old = tuple(part for part in gallery.worth_merging() if part.segment not in self._merged)
        if not new and not old:
            return
        with self._starting:
            if self._background is None or not self._background.is_alive():
                work = Thread(
                    target=self._work, args=(asked, gallery, new, old, merge), name="holue-prepare", daemon=True
                )
                self._background = work
                work.start()

    def _work(
        self, asked: SearchKind, gallery: Gallery, new: Sequence[Segment], old: Sequence[Part], merge: Replace
    ) -> None:
        self._tried.update(new)
        kind = self._measured(asked, gallery)
        for segment in new:
            self._prepare(kind, segment)
        if not old:
            return
        self._merged.update(part.segment for part in old)
        segment = joined(old)
        if is_worth(kind, Part.whole(segment), gallery):
            self._prepare(kind, segment)
        if not merge(old, segment):
            self._merged.difference_update(part.segment for part in old)


def _largest(gallery: Gallery) -> Segment:
    """The segment with the most rows: what holds for it holds for the scan."""
    return max((part.segment for part in gallery.parts), key=len)
