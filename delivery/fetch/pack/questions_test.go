package pack

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/lru"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// askedFor is a pack of another process, and the blocks it was asked for.
func askedFor(pack []byte) (*remotePack, *[]uint64) {
	var blocks []uint64
	replies := answers{pack: bytes.NewReader(pack), store: oneObject{[]byte("base")}}
	return &remotePack{size: int64(len(pack)), blocks: lru.New[int64, []byte](keptBlocks, nil), ask: func(question []byte) ([]byte, error) {
		if question[0] == askBlock {
			blocks = append(blocks, binary.BigEndian.Uint64(question[1:]))
		}
		return replies.answer(question)
	}}, &blocks
}

func TestAPackIsReadInBlocks(t *testing.T) {
	text := sources.Noise(1, 2*blockBytes+100)
	for name, tc := range map[string]struct {
		offset int64
		length int
		want   string
		err    error
		blocks []uint64
	}{
		"within a block":       {10, 20, text[10:30], nil, []uint64{0}},
		"the end of a block":   {blockBytes - 1, 1, text[blockBytes-1 : blockBytes], nil, []uint64{0}},
		"the start of one":     {blockBytes, 1, text[blockBytes : blockBytes+1], nil, []uint64{1}},
		"across two":           {blockBytes - 5, 10, text[blockBytes-5 : blockBytes+5], nil, []uint64{0, 1}},
		"all":                  {0, len(text), text, nil, []uint64{0, 1, 2}},
		"the last byte":        {int64(len(text)) - 1, 1, text[len(text)-1:], nil, []uint64{2}},
		"past the end":         {int64(len(text)) - 1, 2, text[len(text)-1:], io.EOF, []uint64{2}},
		"from the end":         {int64(len(text)), 1, "", io.EOF, nil},
		"nothing from the end": {int64(len(text)), 0, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			from, blocks := askedFor([]byte(text))
			for range 2 { // The second time nothing is asked for.
				got := make([]byte, tc.length)
				n, err := from.ReadAt(got, tc.offset)
				if string(got[:n]) != tc.want || err != tc.err { //nolint:errorlint // an io.ReaderAt returns io.EOF itself
					t.Errorf("got %d bytes of %d, %v", n, len(tc.want), err)
				}
			}
			if diff := cmp.Diff(tc.blocks, *blocks); diff != "" {
				t.Errorf("asked for blocks: %s", diff)
			}
		})
	}
}

func TestAnAnswerAboutAnotherPackIsRefused(t *testing.T) {
	from, _ := askedFor([]byte("short"))
	from.size = 100
	if n, err := from.ReadAt(make([]byte, 10), 0); n != 5 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %d, %v", n, err)
	}
	broken := errors.New("the operator is gone")
	from, _ = askedFor([]byte("short"))
	from.ask = func([]byte) ([]byte, error) { return nil, broken }
	if n, err := from.ReadAt(make([]byte, 10), 0); n != 0 || !errors.Is(err, broken) {
		t.Errorf("got %d, %v", n, err)
	}
	_, sizeErr := from.Size(blobName("base"))
	if _, _, err := from.Object(blobName("base")); !errors.Is(err, broken) || !errors.Is(sizeErr, broken) {
		t.Errorf("got %v, %v", sizeErr, err)
	}
	from.ask = func([]byte) ([]byte, error) { return nil, nil }
	_, sizeErr = from.Size(blobName("base"))
	if _, _, err := from.Object(blobName("base")); !errors.Is(err, errQuestion) || !errors.Is(sizeErr, errQuestion) {
		t.Errorf("of an empty answer: %v, %v", sizeErr, err)
	}
}

func TestTheStoreIsQueriedByName(t *testing.T) {
	from, _ := askedFor(nil)
	if size, err := from.Size(blobName("base")); size != 4 || err != nil {
		t.Errorf("got %d, %v", size, err)
	}
	if kind, content, err := from.Object(blobName("base")); kind != plumbing.BlobObject || string(content) != "base" || err != nil {
		t.Errorf("got %s %q, %v", kind, content, err)
	}
	if _, err := from.Size(blobName("other")); !errors.Is(err, plumbing.ErrObjectNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestInvalidQuestionsOfAProcessAreRefused(t *testing.T) {
	replies := answers{pack: bytes.NewReader([]byte("pack")), store: oneObject{[]byte("base")}}
	block := func(number uint64) []byte { return binary.BigEndian.AppendUint64([]byte{askBlock}, number) }
	for name, tc := range map[string]struct {
		question []byte
		want     string
		refused  bool
	}{
		"a block":               {block(0), "pack", false},
		"past the end":          {block(1), "", false},
		"the last":              {block(1 << 32), "", false},
		"past that":             {block(1<<32 + 1), "", true},
		"negative as an offset": {block(1 << 63), "", true},
		"nothing":               {nil, "", true},
		"no number":             {[]byte{askBlock}, "", true},
		"too long":              {append(block(0), 0), "", true},
		"a size":                {append([]byte{askSize}, nameOf("base")...), "\x08", false},
		"a size of no name":     {[]byte{askSize, 1}, "", true},
		"an object":             {append([]byte{askObject}, nameOf("base")...), "\x03base", false},
		"another kind":          {append([]byte{askObject + 1}, nameOf("base")...), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := replies.answer(tc.question)
			if errors.Is(err, errQuestion) != tc.refused || string(got) != tc.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestAnAnswerIsCheckedBeforeItIsUsed(t *testing.T) {
	object := func(offset uint64) []byte {
		return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, offset), 7), nameOf("base")...)
	}
	for name, tc := range map[string]struct {
		answer any
		says   string
	}{
		"no JSON":           {json.RawMessage("x"), "reading the answer"},
		"half an object":    {outcome{Objects: object(1)[1:]}, "the answer is cut off"},
		"half a base":       {outcome{Bases: nameOf("base")[1:]}, "the answer is cut off"},
		"past the pack":     {outcome{Objects: object(100)}, "the answer is about another pack"},
		"the end of it":     {outcome{Objects: object(99)}, ""},
		"negative":          {outcome{Objects: object(1 << 63)}, "the answer is about another pack"},
		"none":              {outcome{}, ""},
		"two, one is wrong": {outcome{Objects: append(object(1), object(101)...)}, "the answer is about another pack"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := json.Marshal(tc.answer)
			if err != nil {
				answer = []byte("x")
			}
			contents, err := contentsOf(answer, 100)
			if tc.says == "" {
				if err != nil || len(contents.Objects) != len(tc.answer.(outcome).Objects)/entryBytes {
					t.Errorf("got %v, %v", contents, err)
				}
				return
			}
			sources.WantError(t, err, ErrUnfit, tc.says)
		})
	}
}

func TestTheKindOfAnErrorSurvivesTheProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		err              error
		tooLarge, tenant bool
	}{
		"damaged":      {errors.New("damaged"), false, false},
		"too large":    {failure.New(failure.ErrTooLarge, "large"), true, false},
		"the tenant's": {failure.Because(failure.ErrTooLarge, &budget.Exceeded{Field: budget.PackBytes}, "packs"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := json.Marshal(outcome{Err: problemOf(tc.err)})
			if err != nil {
				t.Fatal(err)
			}
			_, got := contentsOf(answer, 0)
			var exceeded *budget.Exceeded
			if got.Error() != tc.err.Error() || errors.Is(got, failure.ErrTooLarge) != tc.tooLarge || errors.As(got, &exceeded) != tc.tenant {
				t.Errorf("got %v", got)
			}
			if tc.tenant && exceeded.Field.Name != budget.PackBytes.Name {
				t.Errorf("it is about %v", exceeded.Field.Name)
			}
			if errors.Is(got, ErrUnfit) {
				t.Error("a fault of the pack is taken for one of the process")
			}
		})
	}
}

func TestEvaluateRecordsItsProgressAndRefusesOtherInput(t *testing.T) {
	var noted []string
	note := func(place string) { noted = append(noted, place) }
	ask := func([]byte) ([]byte, error) { return nil, io.EOF }
	if _, err := Evaluate([]byte("x"), ask, note); err == nil || !strings.Contains(err.Error(), "reading what pack to read") {
		t.Errorf("got %v", err)
	}
	if _, err := Evaluate([]byte("{}"), ask, note); err != nil {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"the commit's pack"}, noted); diff != "" {
		t.Error(diff)
	}
}
