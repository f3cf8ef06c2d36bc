//! Reads the tables of a feed except `stop_times.txt`, in the order of their references: each table after those that it
//! refers to.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::error::FeedError;
use super::files::Files;
use super::stop_times;
use super::table::{Column, Row, Table};
use crate::timetable::{PlatformRow, RouteRow, Service, StationRow, Timetable, Transfer, TripRow, date_number};

/// The row index of each id in its table.
pub(super) type Index = HashMap<String, u32>;

pub(super) fn read(files: &mut Files) -> Result<Timetable, FeedError> {
    reject_frequencies(files)?;
    let timezone = read_timezone(files)?;
    let Stops { stations, platforms } = read_stops(files)?;
    let routes = read_routes(files)?;
    let services = read_services(files)?;
    let trips = read_trips(files, &index(&routes, |row| &row.id), &index(&services, |row| &row.id))?;
    let platform_index = index(&platforms, |row| &row.id);
    let (patterns, profiles, trips) = stop_times::read(files, trips, &platform_index)?;
    let transfers = read_transfers(files, &stations, &platforms)?;
    Ok(Timetable { timezone, stations, platforms, routes, services, patterns, profiles, trips, transfers })
}

pub(super) fn index<T>(rows: &[T], id_of: impl Fn(&T) -> &String) -> Index {
    (0..).zip(rows).map(|(index, row)| (id_of(row).clone(), index)).collect()
}

fn reject_frequencies(files: &mut Files) -> Result<(), FeedError> {
    let file = "frequencies.txt";
    match Table::find(files, file)? {
        Some(table) => table.for_each(|_| Err(FeedError::Unsupported { file })),
        None => Ok(()),
    }
}

fn read_timezone(files: &mut Files) -> Result<String, FeedError> {
    let table = Table::open(files, "agency.txt")?;
    let column = table.column("agency_timezone")?;
    let mut timezone = String::new();
    table.for_each(|row| {
        if timezone.is_empty() {
            row.required_text(column)?.clone_into(&mut timezone);
        }
        Ok(())
    })?;
    Ok(timezone)
}

struct Stops {
    stations: Vec<StationRow>,
    platforms: Vec<PlatformRow>,
}

/// Reads stations first and platforms in a second pass, because a platform can precede its parent.
fn read_stops(files: &mut Files) -> Result<Stops, FeedError> {
    let (stations, wheelchair) = read_stations(files)?;
    let platforms = read_platforms(files, &index(&stations, |row| &row.id), &wheelchair)?;
    Ok(Stops { stations, platforms })
}

const PLATFORM: u32 = 0;
const STATION: u32 = 1;

fn read_stations(files: &mut Files) -> Result<(Vec<StationRow>, HashMap<String, bool>), FeedError> {
    let table = Table::open(files, "stops.txt")?;
    let (id, name) = (table.column("stop_id")?, table.column("stop_name")?);
    let (latitude, longitude) = (table.find_column("stop_lat"), table.find_column("stop_lon"));
    let (kind, parent) = (table.find_column("location_type"), table.find_column("parent_station"));
    let wheelchair = table.find_column("wheelchair_boarding");
    let mut stations = Vec::new();
    let mut accessible = HashMap::new();
    let mut seen = HashSet::new();
    table.for_each(|row| {
        if !seen.insert(row.required_text(id)?.to_owned()) {
            return Err(row.repeated(id));
        }
        let kind = row.number(kind)?.unwrap_or(PLATFORM);
        if kind == STATION || kind == PLATFORM && row.optional_text(parent).is_empty() {
            let id = row.text(id).to_owned();
            accessible.extend(wheelchair_of(row, wheelchair)?.map(|is_accessible| (id.clone(), is_accessible)));
            stations.push(StationRow {
                id,
                name: row.text(name).to_owned(),
                latitude: row.degrees(latitude, 90.0)?.unwrap_or_default(),
                longitude: row.degrees(longitude, 180.0)?.unwrap_or_default(),
            });
        }
        Ok(())
    })?;
    stations.sort_by(|one, other| one.id.cmp(&other.id));
    Ok((stations, accessible))
}

fn read_platforms(
    files: &mut Files,
    stations: &Index,
    wheelchair_of_station: &HashMap<String, bool>,
) -> Result<Vec<PlatformRow>, FeedError> {
    let table = Table::open(files, "stops.txt")?;
    let id = table.column("stop_id")?;
    let (kind, parent) = (table.find_column("location_type"), table.find_column("parent_station"));
    let wheelchair = table.find_column("wheelchair_boarding");
    let mut platforms = Vec::new();
    table.for_each(|row| {
        if row.number(kind)?.unwrap_or(PLATFORM) != PLATFORM {
            return Ok(());
        }
        let platform = row.text(id).to_owned();
        let station = match parent.filter(|parent| !row.text(*parent).is_empty()) {
            Some(parent) => *stations.get(row.text(parent)).ok_or_else(|| row.unknown(parent))?,
            None => stations[&platform],
        };
        let inherited = wheelchair_of_station.get(row.optional_text(parent)).copied();
        let wheelchair = wheelchair_of(row, wheelchair)?.or(inherited);
        platforms.push(PlatformRow { id: platform, station, wheelchair });
        Ok(())
    })?;
    platforms.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(platforms)
}

fn wheelchair_of(row: &Row, column: Option<Column>) -> Result<Option<bool>, FeedError> {
    Ok(match row.number(column)? {
        Some(1) => Some(true),
        Some(2) => Some(false),
        _ => None,
    })
}

fn read_routes(files: &mut Files) -> Result<Vec<RouteRow>, FeedError> {
    let table = Table::open(files, "routes.txt")?;
    let (id, name) = (table.column("route_id")?, table.find_column("route_short_name"));
    let mut routes: Vec<RouteRow> = Vec::new();
    let mut seen = HashSet::new();
    table.for_each(|row| {
        let route = row.required_text(id)?;
        if !seen.insert(route.to_owned()) {
            return Err(row.repeated(id));
        }
        let name = Some(row.optional_text(name)).filter(|name| !name.is_empty()).unwrap_or(route);
        routes.push(RouteRow { id: route.to_owned(), name: name.to_owned() });
        Ok(())
    })?;
    routes.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(routes)
}

/// Reads `calendar.txt` and `calendar_dates.txt`. A feed can have either or both.
fn read_services(files: &mut Files) -> Result<Vec<Service>, FeedError> {
    let mut services = BTreeMap::new();
    let calendar = Table::find(files, "calendar.txt")?;
    let dates = Table::find(files, "calendar_dates.txt")?;
    if calendar.is_none() && dates.is_none() {
        return Err(FeedError::MissingFile { file: "calendar.txt" });
    }
    calendar.map_or(Ok(()), |table| read_calendar(table, &mut services))?;
    dates.map_or(Ok(()), |table| read_calendar_dates(table, &mut services))?;
    Ok(services.into_values().collect())
}

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

fn read_calendar(table: Table, services: &mut BTreeMap<String, Service>) -> Result<(), FeedError> {
    let id = table.column("service_id")?;
    let days = WEEKDAYS.iter().map(|day| table.column(day)).collect::<Result<Vec<_>, _>>()?;
    let (start, end) = (table.column("start_date")?, table.column("end_date")?);
    table.for_each(|row| {
        let mut service = Service::named(row.required_text(id)?);
        for (runs, day) in service.weekdays.iter_mut().zip(&days) {
            *runs = row.flag(*day)?;
        }
        service.range = Some((date_number(row.date(start)?), date_number(row.date(end)?)));
        match services.insert(service.id.clone(), service) {
            Some(_) => Err(row.repeated(id)),
            None => Ok(()),
        }
    })
}

fn read_calendar_dates(table: Table, services: &mut BTreeMap<String, Service>) -> Result<(), FeedError> {
    let (id, date, exception) = (table.column("service_id")?, table.column("date")?, table.column("exception_type")?);
    let mut exceptions: BTreeMap<String, BTreeMap<_, bool>> = BTreeMap::new();
    table.for_each(|row| {
        let name = row.required_text(id)?;
        let runs = match row.text(exception) {
            "1" => true,
            "2" => false,
            _ => return Err(row.not_a(exception, "1 or 2")),
        };
        let number = date_number(row.date(date)?);
        match exceptions.entry(name.to_owned()).or_default().insert(number, runs) {
            Some(_) => Err(row.repeated(date)),
            None => Ok(()),
        }
    })?;
    for (name, dates) in exceptions {
        let service = services.entry(name.clone()).or_insert_with(|| Service::named(&name));
        service.exceptions = dates.into_iter().collect();
    }
    Ok(())
}

fn read_trips(files: &mut Files, routes: &Index, services: &Index) -> Result<Vec<TripRow>, FeedError> {
    let table = Table::open(files, "trips.txt")?;
    let (id, route, service) = (table.column("trip_id")?, table.column("route_id")?, table.column("service_id")?);
    let headsign = table.find_column("trip_headsign");
    let mut trips: Vec<TripRow> = Vec::new();
    let mut seen = HashSet::new();
    table.for_each(|row| {
        let trip = row.required_text(id)?;
        if !seen.insert(trip.to_owned()) {
            return Err(row.repeated(id));
        }
        trips.push(TripRow {
            id: trip.to_owned(),
            route: *routes.get(row.text(route)).ok_or_else(|| row.unknown(route))?,
            service: *services.get(row.text(service)).ok_or_else(|| row.unknown(service))?,
            headsign: row.optional_text(headsign).to_owned(),
            profile: 0,
            start: 0,
        });
        Ok(())
    })?;
    trips.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(trips)
}

/// Reads transfers between stations. A transfer between platforms applies to their stations; the shortest one wins.
///
/// Rows that are restricted to a line or trip are ignored, because they do not apply to the others.
fn read_transfers(
    files: &mut Files,
    stations: &[StationRow],
    platforms: &[PlatformRow],
) -> Result<Vec<Transfer>, FeedError> {
    let Some(table) = Table::find(files, "transfers.txt")? else { return Ok(Vec::new()) };
    let (from, to) = (table.column("from_stop_id")?, table.column("to_stop_id")?);
    let (kind, seconds) = (table.find_column("transfer_type"), table.find_column("min_transfer_time"));
    let restriction_columns = ["from_route_id", "to_route_id", "from_trip_id", "to_trip_id"];
    let restriction_columns: Vec<_> = restriction_columns.iter().filter_map(|name| table.find_column(name)).collect();
    let mut station_of = index(stations, |row| &row.id);
    station_of.extend(platforms.iter().map(|platform| (platform.id.clone(), platform.station)));
    let mut shortest = BTreeMap::new();
    table.for_each(|row| {
        if restriction_columns.iter().any(|column| !row.text(*column).is_empty()) {
            return Ok(());
        }
        let ends = (
            *station_of.get(row.text(from)).ok_or_else(|| row.unknown(from))?,
            *station_of.get(row.text(to)).ok_or_else(|| row.unknown(to))?,
        );
        if let 0 | 2 = row.number(kind)?.unwrap_or(0) {
            let seconds = row.number(seconds)?.unwrap_or(0).min(MAX_TRANSFER_SECONDS);
            let entry = shortest.entry(ends).or_insert(seconds);
            *entry = seconds.min(*entry);
        }
        Ok(())
    })?;
    Ok(shortest.into_iter().map(|((from, to), seconds)| Transfer { from, to, seconds }).collect())
}

/// Longer transfers are errors in the feed and are shortened to this.
const MAX_TRANSFER_SECONDS: u32 = 3600;
