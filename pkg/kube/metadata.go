package kube

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// asMetadata asks the API server for metadata alone.
const asMetadata = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

// Fields of messages on the wire, as the .proto files of k8s.io/apimachinery number them.
const (
	unknownRaw          = 2 // runtime.Unknown
	listItems           = 2 // PartialObjectMetadataList
	itemMetadata        = 1 // PartialObjectMetadata
	metadataName        = 1 // ObjectMeta
	metadataNamespace   = 3
	metadataCreated     = 8
	metadataLabels      = 11
	metadataAnnotations = 12
	timeSeconds         = 1 // Time
	entryKey            = 1 // an entry of a map
	entryValue          = 2
)

// protobufMagic begins every answer in protobuf.
const protobufMagic = "k8s\x00"

// someMetadata lists a few fields of objects' metadata, from the API server's cache: names, namespaces,
// labels, annotations, when they were created. The rest, the managed fields above all, is passed over:
// of thousands of objects the whole would take longer to decode than to fetch. The annotation of
// `kubectl apply` is left out, too. What has arrived is decoded while the rest is sent.
func someMetadata(core rest.Interface) func(ctx context.Context, resource, namespace string, of Some) ([]metav1.ObjectMeta, error) {
	return func(ctx context.Context, resource, namespace string, of Some) ([]metav1.ObjectMeta, error) {
		body, err := fromCache(core, asMetadata, resource, namespace, of).Stream(ctx)
		if err != nil { // with what the API server says of it
			return nil, err
		}
		defer func() { _ = body.Close() }() // nothing more is read
		out, err := metadataIn(bufio.NewReaderSize(body, 64<<10))
		if err != nil {
			return nil, fmt.Errorf("metadata of %s: %w", resource, err)
		}
		return out, nil
	}
}

var errNoMetadata = errors.New("the API server did not answer with metadata in protobuf")

func metadataIn(r *bufio.Reader) ([]metav1.ObjectMeta, error) {
	magic := make([]byte, len(protobufMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != protobufMagic {
		return nil, errNoMetadata
	}
	var out []metav1.ObjectMeta
	var item bytes.Buffer
	err := eachLong(r, func(field protowire.Number, list *io.LimitedReader) error {
		if field != unknownRaw {
			return nil
		}
		return eachLong(bufio.NewReaderSize(list, 64<<10), func(field protowire.Number, value *io.LimitedReader) error {
			if field != listItems {
				return nil
			}
			item.Reset()
			if _, err := item.ReadFrom(value); err != nil {
				return err
			}
			if value.N > 0 {
				return io.ErrUnexpectedEOF
			}
			return eachField(item.Bytes(), func(field protowire.Number, value []byte) error {
				if field != itemMetadata {
					return nil
				}
				m, err := objectMeta(value)
				out = append(out, m)
				return err
			})
		})
	})
	return out, err
}

// eachLong calls do for each field of a message that has a length, while the message arrives. What do
// leaves of the field is passed over.
func eachLong(r *bufio.Reader, do func(field protowire.Number, value *io.LimitedReader) error) error {
	for {
		tag, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var length uint64
		if err == nil {
			length, err = binary.ReadUvarint(r) // or the number itself
		}
		field, kind := protowire.DecodeTag(tag)
		switch {
		case err != nil:
		case kind == protowire.BytesType:
			value := &io.LimitedReader{R: r, N: int64(min(length, math.MaxInt64))}
			if err = do(field, value); err == nil {
				_, err = io.Copy(io.Discard, value)
			}
			if err == nil && value.N > 0 {
				err = io.ErrUnexpectedEOF
			}
		case kind != protowire.VarintType:
			err = errNoMetadata
		}
		if err != nil {
			return fmt.Errorf("decode protobuf: %w", err)
		}
	}
}

func objectMeta(message []byte) (metav1.ObjectMeta, error) {
	m := metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}}
	err := eachField(message, func(field protowire.Number, value []byte) error {
		switch field {
		case metadataName:
			m.Name = string(value)
		case metadataNamespace:
			m.Namespace = string(value)
		case metadataCreated:
			return eachField(value, func(field protowire.Number, seconds []byte) error {
				if field == timeSeconds && len(seconds) == 8 {
					m.CreationTimestamp = metav1.Unix(int64(binary.LittleEndian.Uint64(seconds)), 0)
				}
				return nil
			})
		case metadataLabels:
			return putEntry(m.Labels, value)
		case metadataAnnotations:
			return putEntry(m.Annotations, value)
		}
		return nil
	})
	return m, err
}

func putEntry(into map[string]string, message []byte) error {
	var key, value string
	err := eachField(message, func(field protowire.Number, text []byte) error {
		switch {
		case field == entryKey:
			key = string(text)
		case field == entryValue && key != lastApplied: // the key comes first
			value = string(text)
		}
		return nil
	})
	if key != lastApplied {
		into[key] = value
	}
	return err
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// eachField calls do for each field of a message: with the bytes of one that has a length, with the
// eight bytes of a number, the lowest first.
func eachField(message []byte, do func(field protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("decode protobuf: %w", protowire.ParseError(n))
		}
		message = message[n:]
		var value []byte
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			var number uint64
			number, n = protowire.ConsumeVarint(message)
			value = binary.LittleEndian.AppendUint64(nil, number)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return fmt.Errorf("decode protobuf: %w", protowire.ParseError(n))
		}
		message = message[n:]
		if err := do(field, value); err != nil {
			return err
		}
	}
	return nil
}
