package function

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MaxFields is how many fields an answer may have, all its messages together: each takes two bytes
// on the wire, but a hundred and more once it is read (a guess: 64 KiB of an answer are kept).
const MaxFields = 50_000

// errManyFields says that an answer exceeds MaxFields.
var errManyFields = fmt.Errorf("the answer has more than %d fields", MaxFields) //nolint:gochecknoglobals // a sentinel for errors.Is

// boundedCodec is gRPC's protobuf codec, with MaxFields. It waits for the room that the fields of an
// answer take.
type boundedCodec struct{ spend func(n int64) error }

var _ encoding.Codec = boundedCodec{}

// Marshal is encoding.Codec's.
func (boundedCodec) Marshal(v any) ([]byte, error) {
	m, is := v.(proto.Message)
	if !is {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return proto.Marshal(m)
}

// Unmarshal is encoding.Codec's.
func (c boundedCodec) Unmarshal(data []byte, v any) error {
	m, is := v.(proto.Message)
	if !is {
		return fmt.Errorf("%T is no message", v)
	}
	left, err := countFields(m.ProtoReflect().Descriptor(), data, MaxFields)
	if err != nil {
		return err
	}
	if err := c.spend(int64(MaxFields-left) * fieldBytes); err != nil {
		return err
	}
	return proto.Unmarshal(data, m)
}

// Name is encoding.Codec's.
func (boundedCodec) Name() string { return "proto" }

// countFields walks through an encoded message and those within it, and returns how many fields are
// left of the limit.
func countFields(of protoreflect.MessageDescriptor, data []byte, left int) (int, error) {
	for len(data) > 0 {
		if left--; left < 0 {
			return 0, errManyFields
		}
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return 0, fmt.Errorf("the answer cannot be read: %w", protowire.ParseError(n))
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, kind, data)
		if size < 0 {
			return 0, fmt.Errorf("the answer cannot be read: %w", protowire.ParseError(size))
		}
		field := of.Fields().ByNumber(number)
		if kind == protowire.BytesType && field != nil && field.Message() != nil {
			inner, _ := protowire.ConsumeBytes(data)
			var err error
			if left, err = countFields(field.Message(), inner, left); err != nil {
				return 0, err
			}
		}
		data = data[size:]
	}
	return left, nil
}
