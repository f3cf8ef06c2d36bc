use super::station::place;
use crate::arrivals::LiveStatus;
use crate::compare::{ComparisonAnswer, ComparisonRemark, Recommendation, TripOption};
use crate::travel::TimeSource;

/// Formats both options with their totals, and the recommendation.
pub(crate) fn comparison(answer: &ComparisonAnswer) -> String {
    let is_same = answer.transfer.stop_ids == answer.from.stop_ids;
    let (from, to, transfer) = (place(&answer.from), place(&answer.to), place(&answer.transfer));
    let local = &answer.stay.line;
    let head = format!("{from} to {to}: local or express?");
    let next =
        answer.next_local_minutes.map(|minutes| format!("Next {local} at {from}: {}.", super::time_until(minutes)));
    let stay = if is_same { "take" } else { "stay on" };
    let stay = format!("Option 1, {stay} the {local}: {}.", total(&answer.stay));
    let change = answer.change.as_ref().map(|option| {
        let how = if is_same {
            format!("take the {} from {from}", option.line)
        } else {
            format!("change to the {} at {transfer}", option.line)
        };
        let wait = answer.platform_wait_minutes.filter(|_| !is_same).map_or_else(String::new, |minutes| {
            format!("; wait at {transfer} {minutes} min, from the local's arrival to the express's departure")
        });
        let wait = match &answer.express {
            Some(express) if is_same => format!("; it leaves {}", super::time_until(express.minutes_until)),
            _ => wait,
        };
        format!("Option 2, {how}: {}{wait}.", total(option))
    });
    let remarks = answer.remarks.iter().map(|remark| Some(remark_text(remark, answer)));
    let saved = match (answer.stay.total_minutes, answer.change.as_ref().and_then(|option| option.total_minutes)) {
        (Some(stay), Some(change)) if stay != change => format!(", {} min faster", (stay - change).abs()),
        _ => String::new(),
    };
    let recommendation = answer.recommendation.map(|recommendation| match recommendation {
        Recommendation::Local => format!("Recommendation: stay on the {local}{saved}."),
        Recommendation::Express => {
            let express = answer.change.as_ref().map_or("express", |option| option.line.as_str());
            if is_same {
                format!("Recommendation: take the {express}{saved}.")
            } else {
                format!("Recommendation: change to the {express}{saved}.")
            }
        }
    });
    let live = match answer.live {
        LiveStatus::Partial { .. } => super::live(&answer.live),
        _ => None,
    };
    let assumptions = answer.assumptions.iter().map(|assumption| Some(super::assumption(assumption)));
    let lines = [Some(head), next, Some(stay), change].into_iter().chain(remarks);
    super::join_lines(lines.chain([recommendation, live, Some(source(answer))]).chain(assumptions))
}

fn total(option: &TripOption) -> String {
    match option.total_minutes {
        Some(minutes) => {
            let arrival = option.arrives_at.as_ref().map(|time| format!(", arriving {time}")).unwrap_or_default();
            format!("{minutes} min in all from now{arrival}")
        }
        None => format!("{} on trains, waiting not counted", super::minutes(i64::from(option.riding_seconds))),
    }
}

fn remark_text(remark: &ComparisonRemark, answer: &ComparisonAnswer) -> String {
    match remark {
        ComparisonRemark::LiveTimesUnavailable => {
            let sorry = super::live(&LiveStatus::Unavailable).unwrap_or_default();
            format!("{sorry} Without them I cannot say which is faster right now.")
        }
        ComparisonRemark::NoLocal => format!("No {} is announced at {}.", answer.stay.line, place(&answer.from)),
        ComparisonRemark::NoCatchableExpress => match answer.next_local_minutes {
            Some(_) => {
                format!("No express can be caught at {} according to the announced times.", place(&answer.transfer))
            }
            None => format!(
                "Without a {} to take there, no express can be caught at {}.",
                answer.stay.line,
                place(&answer.transfer)
            ),
        },
        ComparisonRemark::ExpressSkips { lines, destination, leave_at } => {
            let (line, verb) = (lines.join("/"), if lines.len() > 1 { "do" } else { "does" });
            let local = &answer.stay.line;
            format!(
                "The {line} {verb} not stop at {destination} during the day: option 2 leaves the express at {leave_at} and continues on the {local}."
            )
        }
        ComparisonRemark::ExpressDoesNotGoThere { lines } => {
            let (line, verb) = (lines.join("/"), if lines.len() > 1 { "do" } else { "does" });
            let transfer = place(&answer.transfer);
            format!(
                "The {line} {verb} not go from {transfer} towards {} during the day: stay on the {}.",
                place(&answer.to),
                answer.stay.line
            )
        }
    }
}

fn source(answer: &ComparisonAnswer) -> String {
    let riding = match answer.times {
        TimeSource::Timetable => "travel times are from the timetable",
        TimeSource::TwoMinutesAStop => "travel times are estimates of 2 min a stop",
    };
    match answer.live {
        LiveStatus::Unavailable => super::capitalised(&format!("{riding}.")),
        _ => format!("Waits are live; {riding}."),
    }
}
