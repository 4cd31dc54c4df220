"""The schema's comments on its messages and fields."""
import functools

from google.protobuf import descriptor_pb2

from . import caffe_pb2

__all__ = ['describe']

# Numbers in the paths of descriptor.proto: those of a file's messages, and of a message's fields and nested messages.
_MESSAGES_OF_FILE, _FIELDS, _NESTED = 4, 2, 3


@functools.lru_cache(maxsize=None)
def _comments():
    """{full name of a message or field: its comment}."""
    found = {}
    for file in caffe_pb2._read_schema().file:
        if file.package != 'crema':
            continue
        texts = {tuple(location.path): ' '.join(location.leading_comments.split())
                 for location in file.source_code_info.location if location.leading_comments}

        def collect(messages, path, prefix):
            for number, message in enumerate(messages):
                here, name = path + (number,), f'{prefix}.{message.name}'
                found[name] = texts.get(here, '')
                for index, field in enumerate(message.field):
                    found[f'{name}.{field.name}'] = texts.get(here + (_FIELDS, index), '')
                collect(message.nested_type, here + (_NESTED,), name)

        collect(file.message_type, (_MESSAGES_OF_FILE,), file.package)
    return found


def _kind(field):
    if field.enum_type is not None:
        kind = ' | '.join(value.name for value in field.enum_type.values)
    elif field.message_type is not None:
        kind = field.message_type.name
    else:
        kind = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)[len('TYPE_'):].lower()
    if not field.has_default_value:
        return kind
    if field.enum_type is not None:
        return f'{kind}, default {field.enum_type.values_by_number[field.default_value].name}'
    return f'{kind}, default {field.default_value!r}'


def describe(message):
    """Describes a message and its fields with their types, defaults and meaning, as text.

    `message` is a class of caffe_pb2, such as caffe_pb2.PoolingParameter, or a message.
    """
    descriptor = message.DESCRIPTOR
    lines = [f'{descriptor.name}: {_comments().get(descriptor.full_name, "")}'.rstrip(' :')]
    for field in descriptor.fields:
        comment = _comments().get(field.full_name, '')
        lines.append(f'    {field.name} ({_kind(field)})' + (f': {comment}' if comment else ''))
    return '\n'.join(lines)
