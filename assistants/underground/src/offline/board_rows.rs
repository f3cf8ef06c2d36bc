//! Reads the trains of a departure board from its text.

/// A train of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// What the board says: "Northern line to Morden via Bank in 4 min (08:44)".
    pub(super) text: String,
    /// The name of the line.
    pub(super) line: String,
    /// Where the train ends, with the branch.
    pub(super) end: String,
    /// The platform; empty if it is not announced.
    pub(super) platform: String,
    /// Minutes after midnight.
    pub(super) at: i64,
    /// Minutes from now.
    pub(super) wait: i64,
}

impl Row {
    /// Returns the line and where the train ends, without times.
    pub(super) fn name(&self) -> String {
        format!("{} to {}", self.line, self.end)
    }
}

/// Reads the trains, soonest first.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let now = text.lines().find_map(|row| minutes_of(row.split_once("(live, ")?.1));
    let mut platform = "";
    let mut rows = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("- ") {
            Some(train) => rows.extend(row(train, platform)),
            None => platform = line.strip_suffix(':').filter(|name| !name.contains("(live")).unwrap_or_default(),
        }
    }
    // The board of each platform is sorted; a train after midnight has a smaller time.
    rows.sort_by_key(|row| now.map_or(row.wait, |now| (row.at - now).rem_euclid(24 * 60)));
    rows
}

fn row(text: &str, platform: &str) -> Option<Row> {
    let (line, rest) = text.split_once(" to ")?;
    let (end, time) = rest.rsplit_once(" in ")?;
    let at = minutes_of(time.split_once(" (")?.1)?;
    let wait = time.split(' ').next()?.parse().unwrap_or(0);
    let platform = if platform == "Platform not announced" { "" } else { platform };
    let (line, end) = (line.to_owned(), end.to_owned());
    Some(Row { text: text.to_owned(), line, end, platform: platform.to_owned(), at, wait })
}

/// Returns the minutes after midnight of a time such as "08:44".
pub(super) fn minutes_of(clock: &str) -> Option<i64> {
    let (hours, minutes) = clock.get(..5)?.split_once(':')?;
    Some(hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?)
}

/// Formats minutes after midnight.
pub(super) fn clock(minutes: i64) -> String {
    let minutes = minutes.rem_euclid(24 * 60);
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trains_of_a_board_are_read_in_order() {
        let text = "Next trains at Angel (live, 23:58):\nNorthbound - Platform 1:\n- Northern line to High Barnet via Bank in 4 min \
                    (00:02)\nSouthbound - Platform 2:\n- Northern line to Morden via Bank in less than a minute (23:58)";
        let found: Vec<(String, String, i64)> =
            rows(text).into_iter().map(|row| (row.name(), row.platform, row.wait)).collect();
        let expected = [
            ("Northern line to Morden via Bank", "Southbound - Platform 2", 0),
            ("Northern line to High Barnet via Bank", "Northbound - Platform 1", 4),
        ];
        assert_eq!(found, expected.map(|(name, platform, wait)| (name.to_owned(), platform.to_owned(), wait)));
    }
}
