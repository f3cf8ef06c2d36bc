//! The time zones of large cities, as POSIX rules, so that no time zone database is needed.
//!
//! The rules are the current ones of the IANA time zone database.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::tz::TimeZone;
use threadkeep::core::text::fold;

/// Returns the name and the time zone of a large city, or of UTC.
pub(crate) fn zone_of(place: &str) -> Option<(&'static str, TimeZone)> {
    let (name, rule) = BY_FOLDED_NAME.get(&folded(place))?;
    Some((name, TimeZone::posix(rule).ok()?))
}

static BY_FOLDED_NAME: LazyLock<HashMap<String, (&str, &str)>> =
    LazyLock::new(|| CITIES.into_iter().map(|city| (folded(city.0), city)).collect());

fn folded(name: &str) -> String {
    name.split_whitespace().map(fold).collect::<Vec<_>>().join(" ")
}

const CITIES: [(&str, &str); 167] = [
    ("UTC", "UTC0"),
    ("GMT", "GMT0"),
    ("London", "GMT0BST,M3.5.0/1,M10.5.0"),
    ("Edinburgh", "GMT0BST,M3.5.0/1,M10.5.0"),
    ("Glasgow", "GMT0BST,M3.5.0/1,M10.5.0"),
    ("Manchester", "GMT0BST,M3.5.0/1,M10.5.0"),
    ("Belfast", "GMT0BST,M3.5.0/1,M10.5.0"),
    ("Cardiff", "GMT0BST,M3.5.0/1,M10.5.0"),
    ("Dublin", "IST-1GMT0,M10.5.0,M3.5.0/1"),
    ("Lisbon", "WET0WEST,M3.5.0/1,M10.5.0"),
    ("Lisboa", "WET0WEST,M3.5.0/1,M10.5.0"),
    ("Porto", "WET0WEST,M3.5.0/1,M10.5.0"),
    ("Reykjavik", "GMT0"),
    ("Accra", "GMT0"),
    ("Dakar", "GMT0"),
    ("Paris", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Madrid", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Barcelona", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Rome", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Roma", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Milan", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Vienna", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Viena", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Zurich", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Geneva", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Brussels", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Bruselas", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Amsterdam", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Munich", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Hamburg", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Frankfurt", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Prague", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Praga", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Warsaw", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Varsovia", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Budapest", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Copenhagen", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Stockholm", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Estocolmo", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Oslo", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Belgrade", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Zagreb", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Sevilla", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Valencia", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Athens", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Atenas", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Helsinki", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Kyiv", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Kiev", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Bucharest", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Sofia", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Vilnius", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Riga", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Tallinn", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Istanbul", "<+03>-3"),
    ("Estambul", "<+03>-3"),
    ("Riyadh", "<+03>-3"),
    ("Baghdad", "<+03>-3"),
    ("Kuwait", "<+03>-3"),
    ("Doha", "<+03>-3"),
    ("Moscow", "MSK-3"),
    ("Moscu", "MSK-3"),
    ("Nairobi", "EAT-3"),
    ("Addis Ababa", "EAT-3"),
    ("Johannesburg", "SAST-2"),
    ("Cape Town", "SAST-2"),
    ("Lagos", "WAT-1"),
    ("Jerusalem", "IST-2IDT,M3.4.4/26,M10.5.0"),
    ("Tel Aviv", "IST-2IDT,M3.4.4/26,M10.5.0"),
    ("Dubai", "<+04>-4"),
    ("Abu Dhabi", "<+04>-4"),
    ("Karachi", "PKT-5"),
    ("Lahore", "PKT-5"),
    ("Islamabad", "PKT-5"),
    ("Delhi", "IST-5:30"),
    ("New Delhi", "IST-5:30"),
    ("Mumbai", "IST-5:30"),
    ("Bangalore", "IST-5:30"),
    ("Bengaluru", "IST-5:30"),
    ("Kolkata", "IST-5:30"),
    ("Chennai", "IST-5:30"),
    ("Hyderabad", "IST-5:30"),
    ("Colombo", "<+0530>-5:30"),
    ("Kathmandu", "<+0545>-5:45"),
    ("Dhaka", "<+06>-6"),
    ("Bangkok", "<+07>-7"),
    ("Hanoi", "<+07>-7"),
    ("Ho Chi Minh City", "<+07>-7"),
    ("Jakarta", "WIB-7"),
    ("Singapore", "<+08>-8"),
    ("Singapur", "<+08>-8"),
    ("Kuala Lumpur", "<+08>-8"),
    ("Beijing", "CST-8"),
    ("Pekin", "CST-8"),
    ("Shanghai", "CST-8"),
    ("Taipei", "CST-8"),
    ("Hong Kong", "HKT-8"),
    ("Manila", "PST-8"),
    ("Perth", "AWST-8"),
    ("Tokyo", "JST-9"),
    ("Tokio", "JST-9"),
    ("Osaka", "JST-9"),
    ("Kyoto", "JST-9"),
    ("Seoul", "KST-9"),
    ("Seul", "KST-9"),
    ("Sydney", "AEST-10AEDT,M10.1.0,M4.1.0/3"),
    ("Melbourne", "AEST-10AEDT,M10.1.0,M4.1.0/3"),
    ("Canberra", "AEST-10AEDT,M10.1.0,M4.1.0/3"),
    ("Hobart", "AEST-10AEDT,M10.1.0,M4.1.0/3"),
    ("Brisbane", "AEST-10"),
    ("Adelaide", "ACST-9:30ACDT,M10.1.0,M4.1.0/3"),
    ("Auckland", "NZST-12NZDT,M9.5.0,M4.1.0/3"),
    ("Wellington", "NZST-12NZDT,M9.5.0,M4.1.0/3"),
    ("New York", "EST5EDT,M3.2.0,M11.1.0"),
    ("Nueva York", "EST5EDT,M3.2.0,M11.1.0"),
    ("NYC", "EST5EDT,M3.2.0,M11.1.0"),
    ("Boston", "EST5EDT,M3.2.0,M11.1.0"),
    ("Washington", "EST5EDT,M3.2.0,M11.1.0"),
    ("Philadelphia", "EST5EDT,M3.2.0,M11.1.0"),
    ("Miami", "EST5EDT,M3.2.0,M11.1.0"),
    ("Atlanta", "EST5EDT,M3.2.0,M11.1.0"),
    ("Toronto", "EST5EDT,M3.2.0,M11.1.0"),
    ("Montreal", "EST5EDT,M3.2.0,M11.1.0"),
    ("Detroit", "EST5EDT,M3.2.0,M11.1.0"),
    ("Orlando", "EST5EDT,M3.2.0,M11.1.0"),
    ("Chicago", "CST6CDT,M3.2.0,M11.1.0"),
    ("Houston", "CST6CDT,M3.2.0,M11.1.0"),
    ("Dallas", "CST6CDT,M3.2.0,M11.1.0"),
    ("Austin", "CST6CDT,M3.2.0,M11.1.0"),
    ("New Orleans", "CST6CDT,M3.2.0,M11.1.0"),
    ("Minneapolis", "CST6CDT,M3.2.0,M11.1.0"),
    ("Winnipeg", "CST6CDT,M3.2.0,M11.1.0"),
    ("Denver", "MST7MDT,M3.2.0,M11.1.0"),
    ("Salt Lake City", "MST7MDT,M3.2.0,M11.1.0"),
    ("Calgary", "MST7MDT,M3.2.0,M11.1.0"),
    ("Edmonton", "MST7MDT,M3.2.0,M11.1.0"),
    ("Phoenix", "MST7"),
    ("Los Angeles", "PST8PDT,M3.2.0,M11.1.0"),
    ("San Francisco", "PST8PDT,M3.2.0,M11.1.0"),
    ("Seattle", "PST8PDT,M3.2.0,M11.1.0"),
    ("San Diego", "PST8PDT,M3.2.0,M11.1.0"),
    ("Las Vegas", "PST8PDT,M3.2.0,M11.1.0"),
    ("Portland", "PST8PDT,M3.2.0,M11.1.0"),
    ("Vancouver", "PST8PDT,M3.2.0,M11.1.0"),
    ("Halifax", "AST4ADT,M3.2.0,M11.1.0"),
    ("Honolulu", "HST10"),
    ("Anchorage", "AKST9AKDT,M3.2.0,M11.1.0"),
    ("Mexico City", "CST6"),
    ("Ciudad de Mexico", "CST6"),
    ("Guadalajara", "CST6"),
    ("Monterrey", "CST6"),
    ("San Jose", "CST6"),
    ("Bogota", "<-05>5"),
    ("Lima", "<-05>5"),
    ("Quito", "<-05>5"),
    ("Medellin", "<-05>5"),
    ("Panama", "EST5"),
    ("Kingston", "EST5"),
    ("Caracas", "<-04>4"),
    ("La Paz", "<-04>4"),
    ("Buenos Aires", "<-03>3"),
    ("Sao Paulo", "<-03>3"),
    ("Rio de Janeiro", "<-03>3"),
    ("Montevideo", "<-03>3"),
    ("Brasilia", "<-03>3"),
    ("Santiago", "<-04>4<-03>,M9.1.6/24,M4.1.6/24"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rules_are_valid() {
        for (name, rule) in CITIES {
            assert!(TimeZone::posix(rule).is_ok(), "{name}: {rule}");
        }
    }

    #[test]
    fn summer_time_is_applied() {
        let at = |place: &str, instant: &str| {
            let instant: jiff::Timestamp = instant.parse().unwrap();
            instant.to_zoned(zone_of(place).unwrap().1).strftime("%H:%M").to_string()
        };
        let (winter, summer) = ("2026-01-12T14:40:00Z", "2026-07-12T14:40:00Z");
        for (place, in_winter, in_summer) in [
            ("Tokyo", "23:40", "23:40"),
            ("new york", "09:40", "10:40"),
            ("Bogotá", "09:40", "09:40"),
            ("London", "14:40", "15:40"),
            ("Sydney", "01:40", "00:40"),
            ("Dublin", "14:40", "15:40"),
        ] {
            assert_eq!((at(place, winter), at(place, summer)), (in_winter.to_owned(), in_summer.to_owned()), "{place}");
        }
        assert!(zone_of("Atlantis").is_none());
    }
}
