package pack

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// oneObject is a store.
type oneObject struct{ content []byte }

func (o oneObject) name() plumbing.Hash { return plumbing.ComputeHash(plumbing.BlobObject, o.content) }

func (o oneObject) Size(hash plumbing.Hash) (int64, error) {
	if hash != o.name() {
		return 0, plumbing.ErrObjectNotFound
	}
	return int64(len(o.content)), nil
}

func (o oneObject) Object(hash plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	if hash != o.name() {
		return plumbing.InvalidObject, nil, plumbing.ErrObjectNotFound
	}
	return plumbing.BlobObject, o.content, nil
}

var usual = Limits{Objects: 100, Inflated: limit.MiB, Object: limit.MiB, Oversized: limit.MiB, Chain: limit.MiB, Base: limit.MiB, Bases: limit.MiB}

// packOf is a pack of so many objects, as they are in it.
func packOf(objects uint32, text []byte) []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), objects)
	pack = append(pack, text...)
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

func encoded(t testing.TB, contents ...string) []byte {
	var text bytes.Buffer
	for _, content := range contents {
		if err := Append(&text, plumbing.BlobObject, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return packOf(uint32(len(contents)), text.Bytes())
}

// evaluated reads a pack as another process does: by questions and answers.
func evaluated(pack []byte, limits Limits, store Store) (*Contents, error) {
	input, err := json.Marshal(order{Limits: limits, Size: int64(len(pack))})
	if err != nil {
		return nil, err
	}
	answer, err := Evaluate(input, answers{bytes.NewReader(pack), store}.answer, func(string) {})
	if err != nil {
		return nil, err
	}
	return contentsOf(answer, int64(len(pack)))
}

// FuzzEvaluate reads packs in this process, as another process does, and as small ones, and compares the results.
func FuzzEvaluate(f *testing.F) {
	f.Add(encoded(f, "one", "two"))
	f.Add(packOf(1, nil))
	thin := append([]byte{byte(plumbing.REFDeltaObject)<<4 | 5}, nameOf("base")...)
	f.Add(packOf(1, append(thin, "\x78\x9c\x62\x61\x66\x64\x02\x00\x00\x00\xff\xff"...)))
	f.Fuzz(func(t *testing.T, pack []byte) {
		store := oneObject{[]byte("base")}
		want, err := Read(bytes.NewReader(pack), usual, store)
		got, failed := evaluated(pack, usual, store)
		if (err == nil) != (failed == nil) || errors.Is(err, failure.ErrTooLarge) != errors.Is(failed, failure.ErrTooLarge) {
			t.Fatalf("read %v, evaluated %v", err, failed)
		}
		if err == nil && (!slices.Equal(got.Objects, want.Objects) || !slices.Equal(got.Bases, want.Bases)) {
			t.Errorf("read %+v, evaluated %+v", want, got)
		}
		if few, failed := readSmall(bytes.NewReader(pack), usual, store); failed == nil && (err != nil || !slices.Equal(few.Objects, want.Objects)) {
			t.Errorf("as a small one %+v, else %+v, %v", few, want, err)
		}
	})
}

func nameOf(content string) []byte {
	name := oneObject{[]byte(content)}.name()
	return name[:]
}

// FuzzMessages feeds what no end of this package sends: it is refused, in no more memory than it takes.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x01\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add(append([]byte{askObject}, nameOf("base")...))
	f.Add([]byte(`{"Objects":"AAAA"}`))
	f.Add([]byte(`{"Err":{"Text":"x","TooLarge":true}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		if answer, err := (answers{bytes.NewReader([]byte("pack")), oneObject{[]byte("base")}}).answer(message); err == nil && len(answer) > blockBytes {
			t.Errorf("the answer has %d bytes", len(answer))
		}
		contents, err := contentsOf(message, 100)
		if err == nil && len(contents.Objects) > len(message) {
			t.Errorf("%d objects of %d bytes", len(contents.Objects), len(message))
		}
	})
}

// TestErrorsOfAnEvaluationKeepTheirKinds, although they come from another process.
func TestErrorsOfAnEvaluationKeepTheirKinds(t *testing.T) {
	many := encoded(t, "one", "two")
	few, little := usual, usual
	few.Objects, little.Inflated = 1, 5
	for name, test := range map[string]struct {
		pack   []byte
		limits Limits
		want   string
		large  bool
	}{
		"too many": {many, few, "the number of objects in the commit's pack is over the limit of 1", true},
		"too much": {many, little, "what the objects of the commit's pack inflate to, together, is larger than the limit of 5 bytes: take large files out of Git. " +
			"An administrator of the cluster allows more with spec.limits.packBytes of the Tenant, in tenant.yaml of the platform repository", true},
		"no pack": {[]byte("nothing"), usual, "reading the pack: malformed pack file signature", false},
	} {
		_, err := evaluated(test.pack, test.limits, oneObject{})
		if err == nil || err.Error() != test.want || errors.Is(err, failure.ErrTooLarge) != test.large {
			t.Errorf("%s: %v", name, err)
		}
	}
}
