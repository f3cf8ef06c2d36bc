//! Counts test results in the output of cargo test.

/// Counts from the output of cargo and of the test harness.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestCounts {
    pub(super) binaries: usize,
    pub(super) doc_tested_crates: usize,
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) ignored: usize,
}

impl TestCounts {
    /// Adds the counts of one output line, which may contain colour codes.
    pub(super) fn add_line(&mut self, line: &str) {
        let line = without_colour(line);
        let line = line.trim();
        if line.starts_with("Running ") && line.ends_with(')') {
            self.binaries += 1;
        } else if line.starts_with("Doc-tests ") {
            self.doc_tested_crates += 1;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.add_result(result);
        }
    }

    /// Adds a result such as `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
    fn add_result(&mut self, result: &str) {
        let numbers = result.split_once(". ").map_or("", |(_verdict, numbers)| numbers);
        for number in numbers.split("; ") {
            let Some((count, kind)) = number.split_once(' ') else {
                continue;
            };
            let Ok(count) = count.parse::<usize>() else {
                continue;
            };
            match kind {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

fn without_colour(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or(part, |(_code, text)| text));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(output: &str) -> TestCounts {
        let mut counts = TestCounts::default();
        output.lines().for_each(|line| counts.add_line(line));
        counts
    }

    #[test]
    fn counts_are_summed_over_binaries_and_doc_tests() {
        let output = "    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.03s
     Running unittests src/lib.rs (target/debug/deps/core-aaaa)

running 3 tests
test a ... ok
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/store.rs (target/debug/deps/store-bbbb)
test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.50s

   Doc-tests threadkeep_core
test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";
        let expected = TestCounts { binaries: 2, doc_tested_crates: 1, passed: 12, failed: 1, ignored: 1 };
        assert_eq!(counts(output), expected);
    }

    #[test]
    fn colour_codes_are_ignored() {
        let output = "\u{1b}[1m\u{1b}[32m     Running\u{1b}[0m tests/a.rs (target/debug/deps/a-1)
test result: \u{1b}[32mok\u{1b}[m. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(counts(output), TestCounts { binaries: 1, passed: 2, ..TestCounts::default() });
    }

    #[test]
    fn other_lines_are_ignored() {
        assert_eq!(
            counts("Running away\ntest a ... ok\nthe test result: ok. 3 passed; 0 failed"),
            TestCounts::default()
        );
    }
}
