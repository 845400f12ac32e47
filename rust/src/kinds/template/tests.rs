use super::*;
use crate::simd::{run, Level, Operation};

/// Lines of two kinds that take turns: the templates that were made, and the bytes that went by without a scan.
struct Turns<'a>(&'a [u8]);

impl Operation for Turns<'_> {
    type Output = (usize, usize);

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> (usize, usize) {
        let data = self.0;
        let mut templates = Templates::default();
        let (mut at, mut made, mut passed) = (0, 0, 0);
        while at < data.len() {
            let end = templates.take_fitting(engine, data, at, Count);
            passed += end - at;
            at = end;
            if at == data.len() {
                break;
            }
            if let Some((_, fitting)) = templates.guess(engine, data, at) {
                at = fitting.end;
                continue;
            }
            let found = crate::kinds::scan::scan(engine, data, at);
            let gaps = Gaps::of(&found);
            if templates
                .look_up(engine, data, at, found.end, gaps)
                .is_none()
            {
                made += usize::from(templates.add(data, at, found.end, gaps, false, 0).is_some());
            }
            at = found.end;
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

fn lines(kinds: usize, count: usize) -> String {
    let line = |n: usize| {
        format!(
            "{{\"kind\":{},\"uuid\":\"{n:036}\",\"x\":\"y\"}}\n",
            n % kinds
        )
    };
    (0..count).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn lines_that_take_turns_are_scanned_once_each() {
    for level in [Level::Plain, Level::Fast] {
        for kinds in [1, 2, 3, MAX] {
            let data = lines(kinds, 10 * MAX);
            let (made, passed) = run(level, Turns(data.as_bytes()));
            assert_eq!(made, kinds);
            // The first round makes them, the second teaches what follows what.
            let learning = lines(kinds, 2 * kinds + 2).len();
            assert!(passed + learning >= data.len(), "{passed}");
        }
    }
}

#[test]
fn where_templates_do_not_pay_few_are_made() {
    let (made, _) = run(Level::Fast, Turns(lines(100_000, 100_000).as_bytes()));
    assert!(made < 100_000 / 4, "{made}");
}

#[test]
fn a_template_of_many_bytes_is_not_made() {
    let line = format!("{{\"uuid\":\"\",\"x\":\"{}\"}}\n", "y".repeat(MAX_BYTES));
    assert_eq!(run(Level::Fast, Turns(line.repeat(3).as_bytes())), (0, 0));
}
