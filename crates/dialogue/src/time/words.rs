//! The vocabulary of times, normalized: lower case, without accents.

use jiff::civil::Weekday;

use super::DayPart;

pub(super) fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" | "mon" | "mondays" | "lunes" => Weekday::Monday,
        "tuesday" | "tue" | "tues" | "tuesdays" | "martes" => Weekday::Tuesday,
        "wednesday" | "wed" | "weds" | "wednesdays" | "miercoles" => Weekday::Wednesday,
        "thursday" | "thu" | "thur" | "thurs" | "thursdays" | "jueves" => Weekday::Thursday,
        "friday" | "fri" | "fridays" | "viernes" => Weekday::Friday,
        "saturday" | "sat" | "saturdays" | "sabado" | "sabados" => Weekday::Saturday,
        "sunday" | "sundays" | "domingo" | "domingos" => Weekday::Sunday,
        _ => return None,
    })
}

/// Returns the number of a month. Names that are also common words ("may", "march") count only next to a number or after a
/// preposition: the caller checks that.
pub(super) fn month(word: &str) -> Option<i8> {
    let names: [&[&str]; 12] = [
        &["january", "jan", "enero", "ene"],
        &["february", "feb", "febrero"],
        &["march", "mar", "marzo"],
        &["april", "apr", "abril", "abr"],
        &["may", "mayo"],
        &["june", "jun", "junio"],
        &["july", "jul", "julio"],
        &["august", "aug", "agosto", "ago"],
        &["september", "sep", "sept", "septiembre", "setiembre"],
        &["october", "oct", "octubre"],
        &["november", "nov", "noviembre"],
        &["december", "dec", "diciembre", "dic"],
    ];
    names.iter().position(|names| names.contains(&word)).and_then(|at| i8::try_from(at + 1).ok())
}

pub(super) fn number(word: &str) -> Option<i32> {
    const ENGLISH: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    const SPANISH: [&str; 13] =
        ["cero", "una", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "once", "doce"];
    let tens = match word {
        "a" | "an" | "un" | "uno" => Some(1),
        "couple" => Some(2),
        "few" => Some(3),
        "fifteen" | "quince" | "quarter" | "cuarto" => Some(15),
        "twenty" | "veinte" => Some(20),
        "thirty" | "treinta" | "half" | "media" => Some(30),
        "forty" | "cuarenta" => Some(40),
        "fortyfive" => Some(45),
        "fifty" | "cincuenta" => Some(50),
        _ => None,
    };
    let named = |names: &[&str; 13]| names.iter().position(|name| *name == word).and_then(|at| i32::try_from(at).ok());
    tens.or_else(|| named(&ENGLISH)).or_else(|| named(&SPANISH)).or_else(|| digits(word))
}

/// Reads up to four digits.
pub(super) fn digits(word: &str) -> Option<i32> {
    (word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit())).then(|| word.parse().ok()).flatten()
}

/// Reads a day of a month: "2", "2nd", "21st".
pub(super) fn day_of_month(word: &str) -> Option<i8> {
    let bare = ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    let day = match bare {
        "primero" | "first" => 1,
        "second" => 2,
        "third" => 3,
        _ => digits(bare)?,
    };
    i8::try_from(day).ok().filter(|day| (1..=31).contains(day))
}

pub(super) fn part(word: &str) -> Option<DayPart> {
    Some(match word {
        "morning" | "mornings" => DayPart::Morning,
        "afternoon" | "afternoons" | "tarde" | "tardes" => DayPart::Afternoon,
        "evening" | "evenings" => DayPart::Evening,
        "night" | "nights" | "overnight" | "noche" | "noches" => DayPart::Night,
        "madrugada" => DayPart::Night,
        _ => return None,
    })
}

/// Returns the number of minutes in a unit.
pub(super) fn minutes_of(word: &str) -> Option<i32> {
    Some(match word {
        "minute" | "minutes" | "min" | "mins" | "minuto" | "minutos" => 1,
        "hour" | "hours" | "hr" | "hrs" | "hora" | "horas" => 60,
        _ => return None,
    })
}

/// Returns the number of days in a unit.
pub(super) fn days_of(word: &str) -> Option<i32> {
    Some(match word {
        "day" | "days" | "dia" | "dias" => 1,
        "week" | "weeks" | "semana" | "semanas" => 7,
        "fortnight" | "quincena" => 14,
        _ => return None,
    })
}
