"""The messages of nets, solvers, weights and data under Caffe's names: NetParameter, SolverParameter, LayerParameter,
BlobProto, Datum ..., and the values of Phase, TRAIN and TEST.

They are ordinary protocol buffer messages:

    net = caffe_pb2.NetParameter()
    google.protobuf.text_format.Merge(open('net.prototxt').read(), net)
    weights = caffe_pb2.NetParameter.FromString(open('net.caffemodel', 'rb').read())

Messages of different modules are different classes, so those of a caffe_pb2 generated elsewhere do not mix with these.
"""
import os as _os
import sys as _sys

from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf import descriptor_pool as _descriptor_pool
from google.protobuf import message_factory as _message_factory
from google.protobuf import text_format as _text_format  # noqa: F401 (old scripts find it loaded: google.protobuf.text_format)
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper

_FOLDER = _os.path.dirname(_os.path.abspath(__file__))


def _read_schema():
    """Reads the schema that the build has written: the descriptors of all files, imports first."""
    path = _os.path.join(_FOLDER, 'schema.bin')
    try:
        with open(path, 'rb') as file:
            return _descriptor_pb2.FileDescriptorSet.FromString(file.read())
    except OSError as error:
        raise ImportError(
            f'The schema of the messages is not there ({error}): it is written when crema is built, so import '
            'the package from the build or the installation, not from the source tree') from error


def _separate_json_names(messages):
    """Gives fields that differ only in underscores (forks' param_str and param_str_) distinct JSON names: protobuf refuses
    them from 4.22 on."""
    for message in messages:
        _separate_json_names(message.nested_type)
        taken = set()
        for field in message.field:
            if field.json_name in taken:
                field.json_name = field.name
            taken.add(field.json_name)


def _class_maker(pool):
    """The function that makes a message class of a descriptor; its name depends on protobuf's version."""
    if hasattr(_message_factory, 'GetMessageClass'):
        return _message_factory.GetMessageClass
    return _message_factory.MessageFactory(pool).GetPrototype


def _name_class(cls, prefix):
    """Gives a class the module and name that pickle needs to find it."""
    cls.__module__ = __name__
    cls.__qualname__ = prefix + cls.DESCRIPTOR.name


def _define(namespace):
    schema = _read_schema()
    # A pool of our own: other modules' messages, the C++ library's too, may have the same names.
    pool = _descriptor_pool.DescriptorPool()
    for file in schema.file:
        file.ClearField('source_code_info')
        _separate_json_names(file.message_type)
        pool.AddSerializedFile(file.SerializeToString())
    make_class = _class_maker(pool)

    def define_message(descriptor, prefix):
        cls = make_class(descriptor)
        _name_class(cls, prefix)
        for nested in descriptor.nested_types:
            nested_class = define_message(nested, f'{prefix}{descriptor.name}.')
            if not hasattr(cls, nested.name):
                setattr(cls, nested.name, nested_class)
        return cls

    names = []
    for file in schema.file:
        if file.package != 'crema':
            continue
        descriptor = pool.FindFileByName(file.name)
        for name, message in descriptor.message_types_by_name.items():
            namespace[name] = define_message(message, '')
            # Names of the descriptors in generated modules; old scripts use them.
            namespace['_' + name.upper()] = message
            names.append(name)
        for name, enum in descriptor.enum_types_by_name.items():
            namespace[name] = _enum_type_wrapper.EnumTypeWrapper(enum)
            namespace['_' + name.upper()] = enum
            names.append(name)
            for value in enum.values:
                namespace[value.name] = value.number
                names.append(value.name)
    # A fork's message with the fields of another one here.
    for name, ours in (('DeformableConvolutionParameter', 'ConvolutionParameter'),):
        namespace[name] = namespace[ours]
        names.append(name)
    return pool, sorted(names)


_pool, __all__ = _define(_sys.modules[__name__].__dict__)
_V1LAYERPARAMETER_LAYERTYPE = V1LayerParameter.LayerType.DESCRIPTOR  # noqa: F821
