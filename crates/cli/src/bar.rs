//! Draws bar charts in text.

/// The characters for the first, second and further segments of a stacked bar. They can be distinguished without colour.
pub(crate) const SHADES: [&str; 5] = ["█", "▓", "▒", "░", "·"];

/// The scale of a bar: its width, and the amount that the whole width represents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) columns: usize,
    /// The amount that all columns together represent.
    pub(crate) whole: f64,
}

impl Scale {
    /// Returns the column at which a value ends. Clamps values that are out of range; NaN counts as 0.
    pub(crate) fn column(self, value: f64) -> usize {
        let share = if self.whole > 0.0 { (value / self.whole).clamp(0.0, 1.0) } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the columns")]
        let column = (share * self.columns as f64).round() as usize;
        column
    }

    /// Returns the number of columns before a range, and the bar of the range. The bar is visible unless the range is empty.
    pub(crate) fn range(self, from: f64, to: f64) -> (usize, String) {
        let (start, end) = (self.column(from), self.column(to));
        if to > from && start == end {
            return (start.min(self.columns.saturating_sub(1)), "▏".to_owned());
        }
        (start, "█".repeat(end.saturating_sub(start)))
    }

    /// Returns the segments of a stacked bar. The bar ends at the sum of the values, so rounding errors do not accumulate.
    pub(crate) fn shades(self, values: [f64; SHADES.len()]) -> [String; SHADES.len()] {
        let (mut sum, mut start) = (0.0, 0);
        let mut index = 0;
        values.map(|value| {
            sum += value;
            let end = self.column(sum).max(start);
            let blocks = SHADES[index].repeat(end - start);
            (start, index) = (end, index + 1);
            blocks
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Scale = Scale { columns: 10, whole: 200.0 };

    #[test]
    fn ranges_are_proportional_and_always_visible() {
        assert_eq!(TEN.range(0.0, 100.0), (0, "█████".to_owned()));
        assert_eq!(TEN.range(100.0, 200.0), (5, "█████".to_owned()));
        assert_eq!(TEN.range(100.0, 101.0), (5, "▏".to_owned()));
        assert_eq!(TEN.range(199.9, 200.0), (9, "▏".to_owned()));
        assert_eq!(TEN.range(50.0, 50.0), (3, String::new()));
        assert_eq!(TEN.range(0.0, f64::INFINITY), (0, "█".repeat(10)));
        assert_eq!(Scale { whole: 0.0, ..TEN }.range(0.0, f64::NAN), (0, String::new()));
    }

    #[test]
    fn stacked_bars_end_at_the_sum() {
        assert_eq!(TEN.shades([60.0, 60.0, 0.0, 80.0, 0.0]).concat(), "███▓▓▓░░░░");
        assert_eq!(TEN.shades([9.0, 9.0, 9.0, 9.0, 9.0]).concat(), "▓░");
        assert_eq!(TEN.shades([0.0; 5]).concat(), "");
    }
}
