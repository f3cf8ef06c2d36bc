//! Finds time expressions.

use super::words::{day_of_month, days_of, digits, minutes_of, month, number, part, weekday};
use super::{Clock, DayPart, Period, Relation, TimeExpression, TimeMention, Which};
use crate::utterance::Utterance;

/// Finds all time expressions in a message, in order, without overlaps.
///
/// A bare number is a time only after a preposition such as "at" or "by", or with "am", "pm", "o'clock" or minutes.
///
/// ```
/// use threadkeep_dialogue::Utterance;
/// use threadkeep_dialogue::time::{Clock, Period, Relation, find_times};
///
/// let found = find_times(&Utterance::new("Take me home tomorrow by 7:30pm"));
/// let time = found[0].time;
/// assert_eq!((time.relation, time.period), (Relation::By, Some(Period::RelativeDay(1))));
/// assert_eq!(time.clock, Some(Clock { hour: 19, minute: 30, is_24_hour: true }));
/// ```
#[must_use]
pub fn find_times(utterance: &Utterance) -> Vec<TimeMention> {
    let parser = Parser { utterance };
    let mut found: Vec<TimeMention> = Vec::new();
    let mut at = 0;
    while at < utterance.words().len() {
        match parser.mention(at) {
            Some(mention) => {
                at = mention.words.end;
                found.push(mention);
            }
            None => at += 1,
        }
    }
    found
}

struct Parser<'a> {
    utterance: &'a Utterance,
}

/// The meaning of a part of an expression, and the position of the word after it.
type Parsed<T> = Option<(T, usize)>;

impl Parser<'_> {
    fn word(&self, at: usize) -> &str {
        self.utterance.word(at)
    }

    fn is(&self, at: usize, words: &[&str]) -> bool {
        words.contains(&self.word(at))
    }

    fn are(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(i, word)| self.word(at + i) == *word)
    }

    /// Returns the text between two adjacent words.
    fn between(&self, at: usize) -> &str {
        let words = self.utterance.words();
        match (words.get(at), words.get(at + 1)) {
            (Some(one), Some(other)) => &self.utterance.text()[one.span.end..other.span.start],
            _ => "",
        }
    }

    /// Parses an expression that starts at a word: a relation, then a period, a part of the day and a time in any order.
    fn mention(&self, start: usize) -> Option<TimeMention> {
        let (relation, mut at) = self.relation(start).unwrap_or((Relation::At, start));
        let mut time = TimeExpression { relation, ..TimeExpression::default() };
        let mut end = None;
        // "at 8" is a time, "on the 6" is not.
        let mut allows_bare =
            at > start && !self.is(at - 1, &["on", "in", "from", "for", "el", "en", "since", "desde"]);
        loop {
            let after_filler = self.skip_filler(at, end.is_some());
            let mut parsed = false;
            if time.clock.is_none()
                && let Some((clock, next)) = self.clock(after_filler, allows_bare || self.is_time_cue(after_filler))
            {
                (time.clock, at, parsed) = (Some(clock), next, true);
            } else if time.period.is_none()
                && let Some(((period, day_part), next)) = self.period(after_filler, at > start)
            {
                time.period = Some(period);
                time.part = time.part.or(day_part);
                (at, parsed) = (next, true);
            } else if time.part.is_none()
                && let Some((day_part, next)) = self.part(after_filler, end.is_some() || at > start)
            {
                (time.part, at, parsed) = (Some(day_part), next, true);
            } else if end.is_some()
                && time.relation == Relation::At
                && let Some((relation, next)) = self.relation(at)
                && self.clock(self.skip_filler(next, true), true).is_some()
            {
                // "tomorrow by 7".
                (time.relation, at, allows_bare) = (relation, next, true);
                continue;
            }
            if !parsed {
                break;
            }
            end = Some(at);
            allows_bare = false;
        }
        let end = end?;
        self.apply_part(&mut time);
        Some(TimeMention { words: start..end, time })
    }

    /// Resolves an ambiguous hour with the part of the day: "8 in the evening" is 20:00.
    fn apply_part(&self, time: &mut TimeExpression) {
        let (Some(clock), Some(day_part)) = (&mut time.clock, time.part) else { return };
        if clock.is_24_hour {
            return;
        }
        let is_late = match day_part {
            DayPart::Morning => false,
            DayPart::Afternoon | DayPart::Evening => true,
            DayPart::Night => (6..12).contains(&clock.hour),
        };
        clock.hour = match (clock.hour % 12, is_late) {
            (hour, true) => hour + 12,
            (hour, false) => hour,
        };
        clock.is_24_hour = true;
    }

    fn relation(&self, at: usize) -> Parsed<Relation> {
        const PHRASES: [(&[&str], Relation); 52] = [
            (&["a", "las"], Relation::At),
            (&["a", "la", "una"], Relation::At),
            (&["no", "later", "than"], Relation::By),
            (&["to", "be", "there", "by"], Relation::By),
            (&["to", "be", "there", "at"], Relation::By),
            (&["be", "there", "by"], Relation::By),
            (&["be", "there", "at"], Relation::By),
            (&["to", "be", "there", "for"], Relation::By),
            (&["be", "there", "for"], Relation::By),
            (&["get", "there", "for"], Relation::By),
            (&["get", "there", "by"], Relation::By),
            (&["to", "be", "there"], Relation::By),
            (&["be", "there"], Relation::By),
            (&["get", "there", "at"], Relation::By),
            (&["there", "by"], Relation::By),
            (&["there", "before"], Relation::By),
            (&["to", "arrive", "by"], Relation::By),
            (&["arrive", "around"], Relation::By),
            (&["arrival", "by"], Relation::By),
            (&["arrive", "by"], Relation::By),
            (&["arrive", "at"], Relation::By),
            (&["arriving", "by"], Relation::By),
            (&["arriving", "at"], Relation::By),
            (&["arriving", "before"], Relation::By),
            (&["arrive", "before"], Relation::By),
            (&["llegar", "a"], Relation::By),
            (&["llegar", "antes", "de"], Relation::By),
            (&["leaving", "at"], Relation::At),
            (&["leave", "at"], Relation::At),
            (&["departing", "at"], Relation::At),
            (&["depart", "at"], Relation::At),
            (&["leaving", "after"], Relation::After),
            (&["depart"], Relation::At),
            (&["departing"], Relation::At),
            (&["leaving"], Relation::At),
            (&["arrive"], Relation::By),
            (&["arriving"], Relation::By),
            (&["starting", "at"], Relation::After),
            (&["antes", "de", "que"], Relation::Before),
            (&["antes", "de"], Relation::Before),
            (&["antes", "del"], Relation::Before),
            (&["despues", "de"], Relation::After),
            (&["despues", "del"], Relation::After),
            (&["a", "partir", "de"], Relation::After),
            (&["before"], Relation::Before),
            (&["by"], Relation::By),
            (&["para"], Relation::By),
            (&["after"], Relation::After),
            (&["since"], Relation::Since),
            (&["desde"], Relation::Since),
            (&["until"], Relation::Until),
            (&["hasta"], Relation::Until),
        ];
        let found = PHRASES.iter().find(|(words, _)| self.are(at, words));
        // "a la una": the number is part of the time.
        let length = |words: &[&str]| if words.last() == Some(&"una") { 2 } else { words.len() };
        found.map(|(words, relation)| (*relation, at + length(words))).or_else(|| {
            let is_preposition = self
                .is(at, &["at", "on", "in", "around", "about", "from", "till", "for", "el", "en", "sobre", "hacia"]);
            let relation = if self.word(at) == "till" { Relation::Until } else { Relation::At };
            is_preposition.then_some((relation, at + 1))
        })
    }

    fn skip_filler(&self, at: usize, has_begun: bool) -> usize {
        let fillers: &[&str] = if has_begun {
            &[
                "at", "on", "in", "the", "of", "el", "la", "las", "los", "a", "por", "de", "en", "around", "about",
                "like", "roughly",
            ]
        } else {
            &["the", "la", "las", "el", "los", "around", "about", "like", "roughly", "approx"]
        };
        let mut end = at;
        while end < at + 3 && self.is(end, fillers) {
            end += 1;
        }
        end
    }

    /// Whether the words before a position introduce a time of day.
    fn is_time_cue(&self, at: usize) -> bool {
        at > 0 && self.is(at - 1, &["at", "by", "before", "after", "until", "till"])
            || (at > 1 && self.is(at - 2, &["a", "por", "hacia", "sobre"]) && self.is(at - 1, &["las", "la"]))
    }

    fn clock(&self, at: usize, allows_bare: bool) -> Parsed<Clock> {
        if self.is(at, &["noon", "midday", "mediodia"]) {
            return Some((Clock { hour: 12, minute: 0, is_24_hour: true }, at + 1));
        }
        if self.is(at, &["midnight", "medianoche"]) {
            return Some((Clock { hour: 0, minute: 0, is_24_hour: true }, at + 1));
        }
        if let Some(found) = self.spoken_clock(at) {
            return Some(found);
        }
        let (digits_text, glued) = split_suffix(self.word(at));
        let (hour, minute, mut next) = self.hour_and_minute(at, digits_text, allows_bare)?;
        let has_minutes = minute.is_some();
        let mut meridiem = glued.and_then(meridiem_of);
        if glued.is_some() && meridiem.is_none() && !matches!(glued, Some("h" | "hs" | "hrs")) {
            return None;
        }
        if meridiem.is_none() {
            if let Some(found) = meridiem_of(self.word(next)) {
                (meridiem, next) = (Some(found), next + 1);
            } else if matches!(self.word(next), "a" | "p") && self.word(next + 1) == "m" {
                (meridiem, next) = (meridiem_of(if self.word(next) == "a" { "am" } else { "pm" }), next + 2);
            }
        }
        let mut is_marked = has_minutes || meridiem.is_some() || glued.is_some();
        if self.is(next, &["oclock", "horas", "hrs"]) && meridiem.is_none() {
            (is_marked, next) = (true, next + 1);
        }
        if !is_marked && (!allows_bare || self.is_not_a_time(next)) {
            return None;
        }
        clock_of(hour, minute.unwrap_or(0), meridiem).map(|clock| (clock, next))
    }

    /// Reads "8", "8:30", "8.30", "20h15"; "1130" if a bare number is a time.
    fn hour_and_minute(&self, at: usize, digits_text: &str, allows_bare: bool) -> Option<(i32, Option<i32>, usize)> {
        let hour = if digits_text == self.word(at) { number_of_hour(digits_text)? } else { digits(digits_text)? };
        let follows = |separator: &str| self.between(at) == separator;
        let (minute_text, _) = split_suffix(self.word(at + 1));
        let minute = digits(minute_text).filter(|minute| minute_text.len() == 2 && *minute < 60);
        let is_split = follows(":") || (follows(".") && self.word(at).len() <= 2);
        match minute.filter(|_| is_split && digits_text == self.word(at)) {
            Some(minute) => {
                // "8:30pm" is the words "8" and "30pm".
                let glued = split_suffix(self.word(at + 1)).1;
                let next = at + 2;
                if glued.is_some() {
                    self.glued_minutes(hour, minute, glued, next)
                } else {
                    Some((hour, Some(minute), next))
                }
            }
            None => {
                // "830am", "1930".
                if digits_text.len() >= 3 && digits_text.bytes().all(|byte| byte.is_ascii_digit()) {
                    let value = digits(digits_text)?;
                    let is_marked = split_suffix(self.word(at)).1.is_some() || meridiem_of(self.word(at + 1)).is_some();
                    let is_bare_time =
                        allows_bare && digits_text.len() == 4 && value < 2400 && !self.is_not_a_time(at + 1);
                    return ((is_marked || is_bare_time) && value % 100 < 60).then_some((
                        value / 100,
                        Some(value % 100),
                        at + 1,
                    ));
                }
                let spoken = number(self.word(at + 1)).filter(|_| digits(self.word(at)).is_none());
                match spoken.filter(|minute| matches!(minute, 15 | 20 | 30 | 40 | 50)) {
                    // "seven thirty".
                    Some(minute) if !self.is(at + 1, &["half", "media", "quarter", "cuarto"]) => {
                        Some((hour, Some(minute), at + 2))
                    }
                    _ => Some((hour, None, at + 1)),
                }
            }
        }
    }

    fn glued_minutes(
        &self,
        hour: i32,
        minute: i32,
        glued: Option<&str>,
        next: usize,
    ) -> Option<(i32, Option<i32>, usize)> {
        let hour = match glued.and_then(meridiem_of)? {
            Meridiem::Am => hour % 12,
            Meridiem::Pm => hour % 12 + 12,
        };
        Some((hour, Some(minute), next)).filter(|_| hour < 24)
    }

    /// Reads "half past seven", "quarter to nine", "las siete y media".
    fn spoken_clock(&self, at: usize) -> Parsed<Clock> {
        let minutes = number(self.word(at)).filter(|minutes| (1..60).contains(minutes))?;
        let (sign, hour_at) = if self.word(at + 1) == "past" {
            (1, at + 2)
        } else if self.word(at) == "half" && number_of_hour(self.word(at + 1)).is_some() && !self.is_not_a_time(at + 2)
        {
            // "half eight"
            (1, at + 1)
        } else if self.word(at + 1) == "to" && self.is(at, &["quarter", "five", "ten", "twenty"]) {
            (-1, at + 2)
        } else if self.word(at + 1) == "y" && self.is(at + 2, &["media", "cuarto"]) {
            let (hour, minute) = (number_of_hour(self.word(at))?, number(self.word(at + 2))?);
            return clock_of(hour, minute, None).map(|clock| (clock, at + 3));
        } else {
            return None;
        };
        let hour = number_of_hour(self.word(hour_at))?;
        let total = (hour * 60 + sign * minutes).rem_euclid(24 * 60);
        let after = meridiem_of(self.word(hour_at + 1));
        let next = if after.is_some() { hour_at + 2 } else { hour_at + 1 };
        let hour = if total / 60 == 0 && hour == 1 { 12 } else { total / 60 };
        clock_of(hour, total % 60, after).map(|clock| (clock, next))
    }

    /// Whether the word after a bare number shows that it counts something or is part of a name: "by 3 stops", "at 14 St".
    fn is_not_a_time(&self, next: usize) -> bool {
        let word = self.word(next);
        !self.utterance.words()[next - 1].ends_sentence
            && (minutes_of(word).is_some()
                || days_of(word).is_some()
                || month(word).is_some()
                || [
                    "st",
                    "street",
                    "av",
                    "ave",
                    "avenue",
                    "rd",
                    "road",
                    "th",
                    "stops",
                    "stop",
                    "stations",
                    "people",
                    "trains",
                    "train",
                    "lines",
                    "line",
                    "times",
                    "percent",
                    "km",
                    "miles",
                    "blocks",
                    "estaciones",
                    "paradas",
                    "personas",
                    "veces",
                    "dollars",
                    "pesos",
                    "pods",
                    "replicas",
                ]
                .contains(&word))
    }

    fn part(&self, at: usize, allows_bare: bool) -> Parsed<DayPart> {
        if self.word(at) == "manana" && at > 0 && self.is(at - 1, &["la", "esta"]) {
            return Some((DayPart::Morning, at + 1));
        }
        if self.are(at, &["rush", "hour"]) {
            return None;
        }
        part(self.word(at)).filter(|_| allows_bare).map(|day_part| (day_part, at + 1))
    }

    /// Parses a period, with the part of the day that it implies ("tonight").
    fn period(&self, at: usize, has_preposition: bool) -> Parsed<(Period, Option<DayPart>)> {
        let plain = |parsed: Parsed<Period>| parsed.map(|(period, next)| ((period, None), next));
        self.named_day(at)
            .or_else(|| plain(self.iso_date(at)))
            .or_else(|| plain(self.date(at)))
            .or_else(|| plain(self.distance(at)))
            .or_else(|| plain(self.qualified(at)))
            .or_else(|| plain(self.weekday(at)))
            .or_else(|| plain(self.month_or_year(at, has_preposition)))
    }

    fn named_day(&self, at: usize) -> Parsed<(Period, Option<DayPart>)> {
        const PHRASES: [(&[&str], i32, Option<DayPart>); 28] = [
            (&["the", "day", "after", "tomorrow"], 2, None),
            (&["day", "after", "tomorrow"], 2, None),
            (&["the", "day", "before", "yesterday"], -2, None),
            (&["day", "before", "yesterday"], -2, None),
            (&["pasado", "manana"], 2, None),
            (&["antes", "de", "ayer"], -2, None),
            (&["last", "night"], -1, Some(DayPart::Night)),
            (&["this", "morning"], 0, Some(DayPart::Morning)),
            (&["this", "afternoon"], 0, Some(DayPart::Afternoon)),
            (&["this", "evening"], 0, Some(DayPart::Evening)),
            (&["esta", "manana"], 0, Some(DayPart::Morning)),
            (&["esta", "tarde"], 0, Some(DayPart::Afternoon)),
            (&["esta", "noche"], 0, Some(DayPart::Night)),
            (&["today"], 0, None),
            (&["tonight"], 0, Some(DayPart::Night)),
            (&["tonite"], 0, Some(DayPart::Night)),
            (&["tomorrow"], 1, None),
            (&["tomorow"], 1, None),
            (&["tmrw"], 1, None),
            (&["tmr"], 1, None),
            (&["yesterday"], -1, None),
            (&["hoy"], 0, None),
            (&["manana"], 1, None),
            (&["ayer"], -1, None),
            (&["anoche"], -1, Some(DayPart::Night)),
            (&["anteayer"], -2, None),
            (&["antier"], -2, None),
            (&["antenoche"], -2, Some(DayPart::Night)),
        ];
        // "por la mañana" is a part of the day.
        if self.word(at) == "manana" && at > 0 && self.is(at - 1, &["la", "esta"]) {
            return None;
        }
        let found = PHRASES.iter().find(|(words, ..)| self.are(at, words));
        found.map(|(words, days, day_part)| ((Period::RelativeDay(*days), *day_part), at + words.len()))
    }

    fn iso_date(&self, at: usize) -> Parsed<Period> {
        let numbers = [self.word(at), self.word(at + 1), self.word(at + 2)];
        let is_joined = |separator: &str| self.between(at) == separator && self.between(at + 1) == separator;
        let [one, two, three] = numbers.map(digits);
        if numbers[0].len() == 4 && is_joined("-") {
            return date_of(one, two?, three?).map(|date| (date, at + 3));
        }
        None
    }

    /// Reads "2 May", "May 2nd, 2026", "2 de mayo de 2026".
    fn date(&self, at: usize) -> Parsed<Period> {
        if let Some(named) = month(self.word(at)) {
            let mut next = at + 1;
            if self.word(next) == "the" {
                next += 1;
            }
            if let Some(day) = day_of_month(self.word(next)) {
                let (year, next) = self.year(next + 1);
                return date_of(year, i32::from(named), i32::from(day)).map(|date| (date, next));
            }
        }
        let day = day_of_month(self.word(at))?;
        let mut next = at + 1;
        if self.is(next, &["of", "de"]) {
            next += 1;
        }
        let named = month(self.word(next))?;
        let (year, next) = self.year(next + 1);
        date_of(year, i32::from(named), i32::from(day)).map(|date| (date, next))
    }

    fn year(&self, at: usize) -> (Option<i32>, usize) {
        let at = if self.is(at, &["de", "del", "of"]) && self.word(at + 1).len() == 4 { at + 1 } else { at };
        match digits(self.word(at)).filter(|year| (1900..2200).contains(year)) {
            Some(year) => (Some(year), at + 1),
            None => (None, at),
        }
    }

    /// Reads "in 20 minutes", "two hours ago", "hace tres días", "the last 3 days", "half an hour".
    fn distance(&self, at: usize) -> Parsed<Period> {
        let is_last = self.is(at, &["last", "past", "ultimos", "ultimas"]);
        let is_since = self.word(at) == "hace";
        let is_ahead = self.is(at, &["dentro", "within"]);
        let mut from = if is_last || is_since || is_ahead { at + 1 } else { at };
        if is_ahead && self.word(from) == "de" {
            from += 1;
        }
        let (count, unit_at) = if self.are(from, &["half", "an", "hour"]) || self.are(from, &["media", "hora"]) {
            (30, usize::MAX)
        } else if self.are(from, &["a", "couple", "of"]) {
            (2, from + 3)
        } else if self.are(from, &["a", "few"]) {
            (3, from + 2)
        } else {
            (number(self.word(from))?, from + 1)
        };
        let (minutes, mut next) = if unit_at == usize::MAX {
            (count, if self.word(from) == "half" { from + 3 } else { from + 2 })
        } else if let Some(unit) = minutes_of(self.word(unit_at)) {
            (count.checked_mul(unit)?, unit_at + 1)
        } else if let Some(unit) = days_of(self.word(unit_at)) {
            (count.checked_mul(unit)?.checked_mul(24 * 60)?, unit_at + 1)
        } else {
            return None;
        };
        if is_last {
            return Some((Period::LastDays((minutes / (24 * 60)).max(1)), next));
        }
        let is_past = is_since || self.word(next) == "ago" || self.is(next, &["atras", "earlier"]);
        if is_past && !is_since {
            next += 1;
        }
        let is_future =
            is_ahead || self.are(next, &["from", "now"]) || (at > 0 && self.is(at - 1, &["in", "en"]) && !is_past);
        if !is_past && !is_future {
            return None;
        }
        if self.are(next, &["from", "now"]) {
            next += 2;
        }
        let signed = if is_past { -minutes } else { minutes };
        let period = if minutes % (24 * 60) == 0 {
            Period::RelativeDay(signed / (24 * 60))
        } else {
            Period::RelativeMinutes(signed)
        };
        Some((period, next))
    }

    /// Reads "last week", "next Monday", "este mes", "la semana pasada".
    fn qualified(&self, at: usize) -> Parsed<Period> {
        let which = |word: &str| {
            Some(match word {
                "this" | "este" | "esta" | "current" => 0,
                "last" | "past" | "previous" | "pasado" | "pasada" | "anterior" => -1,
                "next" | "coming" | "following" | "proximo" | "proxima" | "siguiente" => 1,
                _ => return None,
            })
        };
        let unit = |at: usize, offset: i32| {
            Some(match self.word(at) {
                "week" | "semana" => (Period::RelativeWeek(offset), at + 1),
                "weekend" => (Period::RelativeWeekend(offset), at + 1),
                "fin" if self.are(at, &["fin", "de", "semana"]) => (Period::RelativeWeekend(offset), at + 3),
                "month" | "mes" => (Period::RelativeMonth(offset), at + 1),
                "year" | "ano" => (Period::RelativeYear(offset), at + 1),
                word => {
                    let day = weekday(word)?;
                    let which = [Which::Last, Which::Nearest, Which::Next][usize::try_from(offset + 1).ok()?];
                    (Period::Weekday(day, which), at + 1)
                }
            })
        };
        if let Some(offset) = which(self.word(at)) {
            return unit(at + 1, offset);
        }
        // "la semana pasada", "el lunes que viene".
        let (period, next) = unit(at, 0)?;
        if let Some(offset) = which(self.word(next))
            .filter(|_| self.is(next, &["pasado", "pasada", "anterior", "proximo", "proxima", "siguiente"]))
        {
            return unit(at, offset).map(|(period, _)| (period, next + 1));
        }
        if self.are(next, &["que", "viene"]) {
            return unit(at, 1).map(|(period, _)| (period, next + 2));
        }
        matches!(period, Period::RelativeWeekend(_)).then_some((period, next))
    }

    fn weekday(&self, at: usize) -> Parsed<Period> {
        if self.is(at, &["weekend", "weekends"]) || self.are(at, &["fin", "de", "semana"]) {
            let next = if self.word(at) == "fin" { at + 3 } else { at + 1 };
            return Some((Period::RelativeWeekend(0), next));
        }
        if self.is(at, &["weekday", "weekdays", "workdays"]) {
            return Some((Period::Workdays, at + 1));
        }
        // The names of days exclude "sun", which is a common word.
        weekday(self.word(at)).map(|day| (Period::Weekday(day, Which::Nearest), at + 1))
    }

    fn month_or_year(&self, at: usize, has_preposition: bool) -> Parsed<Period> {
        let is_after_in = has_preposition
            && at > 0
            && self.is(at - 1, &["in", "en", "since", "desde", "of", "de", "until", "hasta", "before", "after"]);
        if !is_after_in {
            return None;
        }
        if let Some(named) = month(self.word(at)) {
            let (year, next) = self.year(at + 1);
            return Some((Period::Month { year: year.and_then(|year| i16::try_from(year).ok()), month: named }, next));
        }
        let year = digits(self.word(at)).filter(|year| (1900..2200).contains(year))?;
        i16::try_from(year).ok().map(|year| (Period::Year(year), at + 1))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meridiem {
    Am,
    Pm,
}

fn meridiem_of(word: &str) -> Option<Meridiem> {
    match word {
        "am" => Some(Meridiem::Am),
        "pm" => Some(Meridiem::Pm),
        _ => None,
    }
}

/// Splits "8am" into digits and the rest.
fn split_suffix(word: &str) -> (&str, Option<&str>) {
    let end = word.bytes().take_while(u8::is_ascii_digit).count();
    if end == 0 || end == word.len() { (word, None) } else { (&word[..end], Some(&word[end..])) }
}

fn number_of_hour(word: &str) -> Option<i32> {
    // "a" and "half" are numbers, but not hours.
    if matches!(word, "a" | "an" | "un" | "uno" | "half" | "media" | "quarter" | "cuarto" | "couple" | "few") {
        return None;
    }
    number(word)
}

fn clock_of(hour: i32, minute: i32, meridiem: Option<Meridiem>) -> Option<Clock> {
    if !(0..60).contains(&minute) || !(0..=24).contains(&hour) {
        return None;
    }
    let (hour, is_24_hour) = match meridiem {
        Some(_) if hour > 12 => (hour % 24, true),
        Some(Meridiem::Am) => (hour % 12, true),
        Some(Meridiem::Pm) => (hour % 12 + 12, true),
        None => (hour % 24, hour == 0 || hour > 12),
    };
    Some(Clock { hour: i8::try_from(hour).ok()?, minute: i8::try_from(minute).ok()?, is_24_hour })
}

fn date_of(year: Option<i32>, month: i32, day: i32) -> Option<Period> {
    let year = match year {
        Some(year) => Some(i16::try_from(year).ok()?),
        None => None,
    };
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    // 2024 is a leap year, so that 29 February is valid without a year.
    jiff::civil::Date::new(year.unwrap_or(2024), month, day).ok()?;
    Some(Period::Date { year, month, day })
}
