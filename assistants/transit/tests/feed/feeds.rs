//! Test feeds.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use threadkeep_transit::{FeedError, Timetable};

/// The files of a feed by name.
#[derive(Clone)]
pub(crate) struct Files(BTreeMap<&'static str, String>);

impl Files {
    /// Two lines: A - M - B by train 1 and C - N - D by train 2, with a walk between M and N.
    pub(crate) fn crossing() -> Self {
        let stations = ["A", "M", "B", "C", "N", "D"];
        let mut stops = "stop_id,stop_name,location_type,parent_station\n".to_owned();
        for id in stations {
            stops += &format!("{id},\"{id}, the station\",1,\n{id}1,{id},0,{id}\n{id}2,{id},,{id}\n");
        }
        let trips = "route_id,service_id,trip_id,trip_headsign\n1,W,t1,B\n1,W,t2,B\n2,W,u1,D\n2,W,u2,D\n";
        let mut times = "trip_id,stop_id,stop_sequence,arrival_time,departure_time\n".to_owned();
        for (trip, stops, start) in [("t1", "AMB", 8), ("t2", "AMB", 9), ("u1", "CND", 8), ("u2", "CND", 24)] {
            for (sequence, station) in stops.chars().enumerate() {
                let minute = sequence * 10;
                times += &format!("{trip},{station}1,{sequence},{start}:{minute:02}:00,{start}:{minute:02}:30\n");
            }
        }
        Self(BTreeMap::from([
            ("agency.txt", "agency_name,agency_url,agency_timezone\nX,x,America/New_York\n".to_owned()),
            ("stops.txt", stops),
            ("routes.txt", "route_id,route_short_name,route_type\n1,,1\n2,Two,1\n".to_owned()),
            (
                "calendar.txt",
                "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\n\
                 W,1,1,1,1,1,0,0,20240101,20241231\n"
                    .to_owned(),
            ),
            ("trips.txt", trips.to_owned()),
            ("stop_times.txt", times),
            (
                "transfers.txt",
                "from_stop_id,to_stop_id,transfer_type,min_transfer_time\nM,N,2,120\nN,M1,2,240\n".to_owned(),
            ),
        ]))
    }

    pub(crate) fn with(mut self, file: &'static str, content: &str) -> Self {
        self.0.insert(file, content.to_owned());
        self
    }

    pub(crate) fn without(mut self, file: &str) -> Self {
        self.0.remove(file);
        self
    }

    pub(crate) fn replaced(mut self, file: &str, from: &str, to: &str) -> Self {
        let content = self.0.get_mut(file).unwrap();
        assert!(content.contains(from), "{file} has no {from:?}");
        *content = content.replacen(from, to, 1);
        self
    }

    pub(crate) fn appended(mut self, file: &str, line: &str) -> Self {
        self.0.get_mut(file).unwrap().push_str(line);
        self
    }

    pub(crate) fn zip(&self) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in &self.0 {
            archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(content.as_bytes()).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    pub(crate) fn read(&self) -> Result<Timetable, FeedError> {
        Timetable::from_zip(self.zip())
    }

    pub(crate) fn read_from_folder(&self) -> Result<Timetable, FeedError> {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in &self.0 {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        Timetable::from_folder(folder.path())
    }
}
