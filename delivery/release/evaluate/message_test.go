package evaluate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/message"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// noise is text that does not compress well.
func noise(bytes int) string {
	var b strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for range bytes {
		b.WriteByte(byte('!' + random.IntN(90)))
	}
	return b.String()
}

func TestAnAnswerIsUnpackedAsItWasPacked(t *testing.T) {
	for name, want := range map[string]Output{
		"templates":          {Templates: map[string]string{"a.yaml": "---\n{}\n", "NOTES.txt": "hello"}},
		"nothing but kinds":  {Kinds: true},
		"an error":           {Error: "broken", Render: true, TooLarge: true, Rendering: true},
		"much, but the same": {Templates: map[string]string{"a.yaml": strings.Repeat("x", 15<<20)}},
	} {
		answer, err := pack(&want)
		if err != nil || len(answer) > maxPacked {
			t.Fatalf("%s: %d bytes, %v", name, len(answer), err)
		}
		var got Output
		if err := Unpack(answer, &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnAnswerThatNoRecordHoldsIsAnError(t *testing.T) {
	answer, err := pack(&Output{Templates: map[string]string{"a.yaml": noise(5 << 20)}})
	if err != nil {
		t.Fatal(err)
	}
	var got Output
	if err := Unpack(answer, &got); err != nil {
		t.Fatal(err)
	}
	failed := got.Failure()
	if got.Templates != nil || !errors.Is(failed, fault.ErrTooLarge) || !errors.Is(failed, fault.ErrRender) || !strings.Contains(failed.Error(), manifest.ErrTooLargeToRecord.Error()) {
		t.Errorf("got %d templates, %v", len(got.Templates), failed)
	}
}

func TestAnswersThatCannotBeUnpacked(t *testing.T) {
	whole, err := pack(&Output{Kinds: true})
	if err != nil {
		t.Fatal(err)
	}
	large, err := message.Write(Output{Templates: map[string]string{"a.yaml": strings.Repeat("x", maxEvaluated)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string][]byte{
		"not compressed": []byte("no answer"), "cut off": whole[:len(whole)-9], "another message": zipped(t, []byte("no message")), "too large": zipped(t, large),
	} {
		if err := Unpack(answer, &Output{}); err == nil {
			t.Errorf("%s: it is unpacked", name)
		}
	}
}

func zipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	if _, err := to.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestAFailureKeepsItsClassBetweenProcesses(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		out     Output
		lookups []error
		is      []error
		not     []error
	}{
		"of the chart":        {Output{Error: "x"}, nil, nil, []error{fault.ErrRender, fault.ErrTooLarge, fault.ErrLookup}},
		"too large":           {Output{Error: "x", TooLarge: true}, nil, []error{fault.ErrTooLarge}, []error{fault.ErrRender}},
		"of rendering":        {Output{Error: "x", Render: true}, nil, []error{fault.ErrRender}, []error{fault.ErrTooLarge}},
		"a cause of it":       {Output{Error: "x", Render: true, Rendering: true}, nil, []error{fault.ErrRender}, []error{fault.ErrTooLarge}},
		"a lookup that fails": {Output{Error: "x"}, []error{away}, []error{away, fault.ErrLookup}, []error{fault.ErrRender}},
	} {
		err := c.out.Failure(c.lookups...)
		for _, class := range c.is {
			if !errors.Is(err, class) {
				t.Errorf("%s: %v is no %v", name, err, class)
			}
		}
		for _, class := range c.not {
			if errors.Is(err, class) {
				t.Errorf("%s: %v is a %v", name, err, class)
			}
		}
	}
	if err := (&Output{}).Failure(away); err != nil {
		t.Errorf("without an error: %v", err)
	}
}
