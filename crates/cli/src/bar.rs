//! Bars that show how much something is.

/// The blocks of a bar whose parts follow one another, for the first part, the second and so on. They differ without
/// colour, too.
pub(crate) const SHADES: [&str; 5] = ["█", "▓", "▒", "░", "·"];

/// How many columns stand for how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) columns: usize,
    /// What all columns stand for.
    pub(crate) whole: f64,
}

impl Scale {
    /// The column at which a value ends. What cannot be shown (not a number, below 0, beyond the whole) ends at an end.
    pub(crate) fn column(self, value: f64) -> usize {
        let share = if self.whole > 0.0 { (value / self.whole).clamp(0.0, 1.0) } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the columns")]
        let column = (share * self.columns as f64).round() as usize;
        column
    }

    /// The columns before a stretch and the blocks of it. Something is never shown as nothing.
    pub(crate) fn stretch(self, from: f64, to: f64) -> (usize, String) {
        let (start, end) = (self.column(from), self.column(to));
        if to > from && start == end {
            return (start.min(self.columns.saturating_sub(1)), "▏".to_owned());
        }
        (start, "█".repeat(end.saturating_sub(start)))
    }

    /// The blocks of each of several values that follow one another; together they end where their sum does.
    pub(crate) fn shades(self, values: [f64; SHADES.len()]) -> [String; SHADES.len()] {
        let (mut sum, mut start) = (0.0, 0);
        let mut place = 0;
        values.map(|value| {
            sum += value;
            let end = self.column(sum).max(start);
            let blocks = SHADES[place].repeat(end - start);
            (start, place) = (end, place + 1);
            blocks
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Scale = Scale { columns: 10, whole: 200.0 };

    #[test]
    fn a_stretch_is_as_long_as_its_share_and_never_nothing() {
        assert_eq!(TEN.stretch(0.0, 100.0), (0, "█████".to_owned()));
        assert_eq!(TEN.stretch(100.0, 200.0), (5, "█████".to_owned()));
        assert_eq!(TEN.stretch(100.0, 101.0), (5, "▏".to_owned()));
        assert_eq!(TEN.stretch(199.9, 200.0), (9, "▏".to_owned()));
        assert_eq!(TEN.stretch(50.0, 50.0), (3, String::new()));
        assert_eq!(TEN.stretch(0.0, f64::INFINITY), (0, "█".repeat(10)));
        assert_eq!(Scale { whole: 0.0, ..TEN }.stretch(0.0, f64::NAN), (0, String::new()));
    }

    #[test]
    fn shades_end_where_their_sum_does() {
        assert_eq!(TEN.shades([60.0, 60.0, 0.0, 80.0, 0.0]).concat(), "███▓▓▓░░░░");
        assert_eq!(TEN.shades([9.0, 9.0, 9.0, 9.0, 9.0]).concat(), "▓░");
        assert_eq!(TEN.shades([0.0; 5]).concat(), "");
    }
}
