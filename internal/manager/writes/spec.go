package writes

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Spec is the spec of a file. Its integers are int64 and not floats, so that the file has the same digits as the request.
type Spec map[string]any

// UnmarshalJSON implements json.Unmarshaler. It refuses an integer of more than 64 bits, because a file would lose its digits.
func (s *Spec) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return err
	}
	for key, value := range object {
		exact, err := withNumbers(value)
		if err != nil {
			return err
		}
		object[key] = exact
	}
	*s = object
	return nil
}

// withNumbers replaces each json.Number in a value by a number of Go. It changes lists and objects in place.
func withNumbers(value any) (_ any, err error) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if v[key], err = withNumbers(inner); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, inner := range v {
			if v[i], err = withNumbers(inner); err != nil {
				return nil, err
			}
		}
	case json.Number:
		return number(v)
	}
	return value, nil
}

// maxExact is the limit below which a float can represent every integer.
const maxExact = 1 << 53

func number(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil || !strings.ContainsAny(n.String(), ".eE") {
		return nil, problem.Unreadable("has a number in spec that is neither an integer of 64 bits nor a float of 64 bits")
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxExact {
		return int64(f), nil
	}
	return f, nil
}
