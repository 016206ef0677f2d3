"""Messages of github.com/google/pprof/proto/profile.proto, to decode files for pprof."""

import gzip
import os

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.unknown_fields import UnknownFieldSet

TYPES = ("inuse_space", "inuse_objects", "alloc_space", "alloc_objects")
PACKAGE = "perftools.profiles"
# Fields in the order of their numbers, which begin at 1. A star marks repeated fields.
MESSAGES = {
    "Profile": "sample_type:ValueType* sample:Sample* mapping:Mapping* location:Location* "
    "function:Function* string_table:string* drop_frames:int64 keep_frames:int64 time_nanos:int64 "
    "duration_nanos:int64 period_type:ValueType period:int64 comment:int64* "
    "default_sample_type:int64",
    "ValueType": "type:int64 unit:int64",
    "Sample": "location_id:uint64* value:int64* label:Label*",
    "Label": "key:int64 str:int64 num:int64 num_unit:int64",
    "Mapping": "id:uint64 memory_start:uint64 memory_limit:uint64 file_offset:uint64 "
    "filename:int64 build_id:int64 has_functions:bool has_filenames:bool has_line_numbers:bool "
    "has_inline_frames:bool",
    "Location": "id:uint64 mapping_id:uint64 address:uint64 line:Line* is_folded:bool",
    "Line": "function_id:uint64 line:int64",
    "Function": "id:uint64 name:int64 system_name:int64 filename:int64 start_line:int64",
}


def _profile_class():
    file = descriptor_pb2.FileDescriptorProto(
        name="profile.proto", package=PACKAGE, syntax="proto3"
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, text in enumerate(fields.split(), 1):
            field_name, kind = text.rstrip("*").split(":")
            label = kinds.LABEL_REPEATED if text.endswith("*") else kinds.LABEL_OPTIONAL
            field = message.field.add(name=field_name, number=number, label=label)
            if kind in MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Profile"))


Profile = _profile_class()


def unknown_fields(message):
    """Return whether a message, or a message inside, has a field that is not in the schema."""
    if len(UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.message_type is not None:
            values = value if hasattr(value, "append") else [value]
            if any(unknown_fields(each) for each in values):
                return True
    return False


def decoded(file):
    """Return the message of a pprof file, and rows of calls, labels and values."""
    content = gzip.decompress(file)
    profile = Profile()
    assert profile.ParseFromString(content) == len(content)
    assert not unknown_fields(profile)
    texts = profile.string_table
    assert texts[0] == ""
    functions = {each.id: each for each in profile.function}
    locations = {each.id: each for each in profile.location}
    assert len(functions) == len(profile.function)
    assert {each.mapping_id for each in profile.location} <= {each.id for each in profile.mapping}

    def call(number):
        (line,) = locations[number].line
        function = functions[line.function_id]
        return texts[function.name], os.path.basename(texts[function.filename]), line.line

    rows = [
        (
            [call(number) for number in sample.location_id],
            {texts[label.key]: texts[label.str] for label in sample.label},
            dict(zip(TYPES, sample.value, strict=True)),
        )
        for sample in profile.sample
    ]
    types = [(texts[each.type], texts[each.unit]) for each in profile.sample_type]
    assert types == [(name, "bytes" if "space" in name else "count") for name in TYPES]
    assert texts[profile.default_sample_type] == "inuse_space"
    return profile, rows
