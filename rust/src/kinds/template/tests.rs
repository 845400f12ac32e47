use super::*;
use crate::simd::{run, Level, Operation};

/// Takes the lines that fit a template, and scans the others. Returns how many templates were made, and how many bytes were in lines that
/// were not scanned.
struct Turns<'a>(&'a [u8]);

impl Operation for Turns<'_> {
    type Output = (usize, usize);

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> (usize, usize) {
        let data = self.0;
        let mut templates = Templates::default();
        let (mut at, mut made, mut passed) = (0, 0, 0);
        while at < data.len() {
            let (end, refused) = templates.take_fitting(engine, data, at, Count);
            assert_eq!(refused, None);
            passed += end - at;
            at = end;
            if at < data.len() {
                let found = crate::kinds::scan::scan(engine, data, at);
                let gaps = Gaps::of(&found);
                let pays = templates.pays();
                made += usize::from(
                    pays && templates.add(data, at, found.end, gaps, false, 0).is_some(),
                );
                at = found.end;
            }
        }
        assert!(templates.all.len() <= MAX);
        (made, passed)
    }
}

struct Count;

impl Visit<u64> for Count {
    fn visit(&mut self, known: &mut u64, _: usize, _: Fitting) -> bool {
        *known += 1;
        true
    }
}

/// Returns lines of several kinds in turn, which differ before the gap, after the gap, or in both places.
fn lines(kinds: usize, count: usize, [before, after]: [bool; 2]) -> String {
    let line = |n: usize| {
        let kind = |differs| if differs { n % kinds } else { 0 };
        format!(
            "{{\"kind\":{},\"uuid\":\"{n:036}\",\"session\":\"s-{:08}-s\"}}\n",
            kind(before),
            kind(after)
        )
    };
    (0..count).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn alternating_lines_are_each_scanned_once() {
    for level in [Level::Plain, Level::Fast] {
        for kinds in [1, 2, 3, MAX] {
            for differing in [[true, false], [false, true], [true, true]] {
                let data = lines(kinds, 10 * MAX, differing);
                let (made, passed) = run(level, Turns(data.as_bytes()));
                assert_eq!(made, kinds);
                let scanned = lines(kinds, kinds, differing).len();
                assert_eq!(passed + scanned, data.len());
            }
        }
    }
}

#[test]
fn a_template_that_is_removed_is_made_again() {
    let kinds = lines(MAX + 1, MAX + 1, [false, true]);
    let (first, _) = kinds.split_at(kinds.len() / (MAX + 1));
    let (_, last) = kinds.split_at(kinds.len() - first.len());
    let data = [&kinds, last, first].concat();
    // The template of the last kind removed all others.
    assert_eq!(
        run(Level::Fast, Turns(data.as_bytes())),
        (MAX + 2, last.len())
    );
}

#[test]
fn few_templates_are_made_if_they_do_not_pay() {
    let (made, _) = run(
        Level::Fast,
        Turns(lines(100_000, 100_000, [true, false]).as_bytes()),
    );
    assert!(made < 100_000 / 4, "{made}");
}

#[test]
fn a_template_of_many_bytes_is_not_made() {
    let line = format!("{{\"uuid\":\"\",\"x\":\"{}\"}}\n", "y".repeat(MAX_BYTES));
    assert_eq!(run(Level::Fast, Turns(line.repeat(3).as_bytes())), (0, 0));
}
