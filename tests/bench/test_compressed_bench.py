from holue.bench.compressed import as_text, bench_compressed


def test_every_form_is_measured_beside_float32_with_its_bytes_and_bounds() -> None:
    rows = bench_compressed(shapes=((300, 32),), batches=(1, 3), threads=(1,), rounds=2, pause=0.0)
    assert [row["system"] for row in rows] == ["holue", "holue float16", "holue int8"] * 2
    assert {row["times_faster"] for row in rows if row["system"] == "holue"} == {1.0}
    assert [round(row["gallery_mb"] * 1e6) for row in rows[:3]] == [300 * 128, 300 * 72, 300 * 40]
    assert all(len(row["largest_log_mass_bound"]) == 2 for row in rows if row["system"] != "holue")
    assert len(as_text(rows).splitlines()) == 7
