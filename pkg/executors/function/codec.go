package function

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MaxFields is how many fields an answer may have, those of all its messages together:
// each costs a hundred bytes and more once it is read, and two on the wire (a guess:
// what is kept of an answer is 64 KiB).
const MaxFields = 50_000

// errManyFields says that an answer has more.
var errManyFields = fmt.Errorf("the answer has more than %d fields", MaxFields) //nolint:gochecknoglobals // a sentinel for errors.Is

// boundedCodec is protobuf as gRPC has it, and reads no message of too many fields.
type boundedCodec struct{}

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
func (boundedCodec) Unmarshal(data []byte, v any) error {
	m, is := v.(proto.Message)
	if !is {
		return fmt.Errorf("%T is no message", v)
	}
	if _, err := countFields(m.ProtoReflect().Descriptor(), data, MaxFields); err != nil {
		return err
	}
	return proto.Unmarshal(data, m)
}

// Name is encoding.Codec's.
func (boundedCodec) Name() string { return "proto" }

// countFields goes through a message on the wire and those within it, and says how many
// fields more there may be.
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
