"""Decodes GTFS-Realtime captures with the published bindings, and prints their departure boards.

The arguments are the captures. The output is a JSON object: for each file its counts and, at 20 stations, the arrivals at the
time of its header. The extension of New York City Transit is declared here as a protobuf extension.
"""

import collections
import gzip
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.transit import gtfs_realtime_pb2 as realtime

FIELD = descriptor_pb2.FieldDescriptorProto
NUMBER = 1001


def declare_extension():
    file = descriptor_pb2.FileDescriptorProto(name="nyct.proto", package="nyct", syntax="proto2")
    file.dependency.append(realtime.DESCRIPTOR.name)

    def message(name, fields):
        declared = file.message_type.add(name=name)
        for number, (field, kind, label, type_name) in fields.items():
            declared.field.add(name=field, number=number, type=kind, label=label, type_name=type_name)

    one, many = FIELD.LABEL_OPTIONAL, FIELD.LABEL_REPEATED
    message("Period", {
        1: ("route_id", FIELD.TYPE_STRING, one, None),
        2: ("replacement_period", FIELD.TYPE_MESSAGE, one, ".transit_realtime.TimeRange"),
    })
    message("Header", {
        1: ("version", FIELD.TYPE_STRING, one, None),
        2: ("trip_replacement_period", FIELD.TYPE_MESSAGE, many, ".nyct.Period"),
    })
    message("Trip", {
        1: ("train_id", FIELD.TYPE_STRING, one, None),
        2: ("is_assigned", FIELD.TYPE_BOOL, one, None),
        3: ("direction", FIELD.TYPE_INT32, one, None),
    })
    for name, kind, extended in [("header", "Header", "FeedHeader"), ("trip", "Trip", "TripDescriptor")]:
        file.extension.add(name=name, number=NUMBER, type=FIELD.TYPE_MESSAGE, label=one,
                           type_name=f".nyct.{kind}", extendee=f".transit_realtime.{extended}")
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClassesForFiles(["nyct.proto"], pool)


def read(path):
    content = open(path, "rb").read()
    return gzip.decompress(content) if path.endswith(".gz") else content


def calls_of(update):
    for call in update.stop_time_update:
        arrival = call.arrival.time if call.HasField("arrival") else 0
        departure = call.departure.time if call.HasField("departure") else 0
        yield call.stop_id, arrival, departure


def describe(path, trip_extension, header_extension):
    feed = realtime.FeedMessage()
    feed.ParseFromString(read(path))
    now = feed.header.timestamp
    updates = [entity.trip_update for entity in feed.entity if entity.HasField("trip_update")]
    board = collections.defaultdict(list)
    assigned = calls_count = 0
    for update in updates:
        trip = update.trip
        has_extension = trip.HasExtension(trip_extension)
        is_assigned = not has_extension or trip.Extensions[trip_extension].is_assigned
        assigned += has_extension and is_assigned
        calls = list(calls_of(update))
        calls_count += len(calls)
        if not calls:
            continue
        starts_at = calls[0][2] or calls[0][1]
        if not is_assigned and starts_at < now:
            continue
        for platform, arrival, departure in calls:
            at = arrival or departure
            if at >= now:
                board[platform[:-1]].append([at, trip.trip_id, trip.route_id, platform, is_assigned])
    stations = sorted(board, key=lambda station: (-len(board[station]), station))
    # The ten busiest stations, and ten spread over the others.
    rest = stations[10:]
    chosen = stations[:10] + rest[:: max(1, len(rest) // 10)][:10]
    return {
        "made_at": now,
        "trips": len(updates),
        "assigned": assigned,
        "calls": calls_count,
        "periods": len(feed.header.Extensions[header_extension].trip_replacement_period),
        "board": {station: sorted(board[station]) for station in chosen},
    }


def main():
    declare_extension()
    pool = descriptor_pool.Default()
    trip = pool.FindExtensionByName("nyct.trip")
    header = pool.FindExtensionByName("nyct.header")
    json.dump({path: describe(path, trip, header) for path in sys.argv[1:]}, sys.stdout)


main()
