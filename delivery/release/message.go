package release

import (
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// Bounds of a message between the processes. CBOR keeps what JSON does not: whether a number is whole.
const (
	maxItems = 16 << 20
	maxDepth = 10_000
)

func marshal(message any) ([]byte, error) {
	text, err := cbor.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("writing a message: %w", err)
	}
	return text, nil
}

func unmarshal(text []byte, message any) error {
	mode, err := cbor.DecOptions{
		DefaultMapType: reflect.TypeFor[map[string]any](), IntDec: cbor.IntDecConvertSignedOrFail, UTF8: cbor.UTF8DecodeInvalid,
		MaxArrayElements: maxItems, MaxMapPairs: maxItems, MaxNestedLevels: maxDepth,
	}.DecMode()
	if err != nil {
		return err
	}
	return mode.Unmarshal(text, message)
}
