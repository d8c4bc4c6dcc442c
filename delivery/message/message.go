// Package message has the form of the messages between the operator and the sandboxed processes that evaluate what tenants declare. What a
// process sends is decoded within limits, because a tenant's input may have taken the process over. Messages are CBOR, which unlike JSON keeps
// bytes, and whether a number is an integer.
package message

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// Limits bound what a message decodes to. A short message can name long lists and deep nesting.
type Limits struct {
	// Items of a list, and pairs of a mapping. At least 16.
	Items int
	// Depth of nested lists and mappings, from 4 to 65,535.
	Depth int
}

// Reader decodes messages.
type Reader struct{ mode cbor.DecMode }

// NewReader returns a Reader with limits, which must be in their ranges.
func NewReader(l Limits) Reader {
	mode, err := cbor.DecOptions{
		DefaultMapType: reflect.TypeFor[map[string]any](), IntDec: cbor.IntDecConvertSignedOrFail, UTF8: cbor.UTF8DecodeInvalid,
		MaxArrayElements: l.Items, MaxMapPairs: l.Items, MaxNestedLevels: l.Depth,
	}.DecMode()
	if err != nil {
		panic(err) // The limits are constants.
	}
	return Reader{mode}
}

// Read decodes a message that is all of a text.
func (r Reader) Read(text []byte, message any) error {
	rest, err := r.ReadFirst(text, message)
	if err == nil && len(rest) > 0 {
		return errors.New("more follows the message")
	}
	return err
}

// ReadFirst decodes the message that a text begins with, and returns the bytes after it.
func (r Reader) ReadFirst(text []byte, message any) (rest []byte, err error) {
	rest, err = r.mode.UnmarshalFirst(text, message)
	if err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	return rest, nil
}

// Write encodes a message.
func Write(message any) ([]byte, error) {
	text, err := cbor.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("writing a message: %w", err)
	}
	return text, nil
}
