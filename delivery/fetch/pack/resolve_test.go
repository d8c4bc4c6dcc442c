package pack

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestDeltasGetTheNameOfTheirResult(t *testing.T) {
	a := blob(t, "a")
	aToB := toOffset(t, len(a), suffixed("a", "b"))
	cases := map[string]struct {
		objects [][]byte
		want    []string
		bases   []string
	}{
		"none":                             {[][]byte{a, blob(t, "")}, []string{"a", ""}, nil},
		"a chain by offset":                {[][]byte{a, aToB, toOffset(t, len(aToB), suffixed("ab", "c"))}, []string{"a", "ab", "abc"}, nil},
		"a chain by name":                  {[][]byte{a, toName(t, blobName("a"), suffixed("a", "b")), toName(t, blobName("ab"), suffixed("ab", "c"))}, []string{"a", "ab", "abc"}, nil},
		"before their bases":               {[][]byte{toName(t, blobName("ab"), suffixed("ab", "c")), toName(t, blobName("a"), suffixed("a", "b")), a}, []string{"abc", "ab", "a"}, nil},
		"two of one base":                  {[][]byte{a, aToB, toName(t, blobName("a"), suffixed("a", "z"))}, []string{"a", "ab", "az"}, nil},
		"two, and more of each":            {[][]byte{a, aToB, toName(t, blobName("a"), suffixed("a", "z")), toName(t, blobName("ab"), suffixed("ab", "c")), toName(t, blobName("az"), suffixed("az", "y"))}, []string{"a", "ab", "az", "abc", "azy"}, nil},
		"two that make the same":           {[][]byte{a, aToB, toName(t, blobName("a"), suffixed("a", "b"))}, []string{"a", "ab", "ab"}, nil},
		"of the store":                     {[][]byte{toName(t, blobName("base"), suffixed("base", "d"))}, []string{"based"}, []string{"base"}},
		"of the store, and of those":       {[][]byte{toName(t, blobName("based"), suffixed("based", "!")), toName(t, blobName("base"), suffixed("base", "d"))}, []string{"based!", "based"}, []string{"base"}},
		"by offset, of one of the store":   {[][]byte{toName(t, blobName("base"), suffixed("base", "d")), toOffset(t, len(toName(t, blobName("base"), suffixed("base", "d"))), suffixed("based", "!"))}, []string{"based", "based!"}, []string{"base"}},
		"of an object that is there twice": {[][]byte{a, a, toOffset(t, len(a), suffixed("a", "b")), toName(t, blobName("a"), suffixed("a", "z"))}, []string{"a", "a", "ab", "az"}, nil},
		"of both the pack's and ours":      {[][]byte{blob(t, "base"), toName(t, blobName("base"), suffixed("base", "d"))}, []string{"base", "based"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pack, want := packWith(tc.objects...), &Contents{}
			at := len("PACK") + 4 + 4
			for i, object := range tc.objects {
				want.Objects = append(want.Objects, idxfile.Entry{Hash: blobName(tc.want[i]), CRC32: crc32.ChecksumIEEE(object), Offset: uint64(at)})
				at += len(object)
			}
			for _, base := range tc.bases {
				want.Bases = append(want.Bases, blobName(base))
			}
			got, err := Read(bytes.NewReader(pack), usual, oneObject{[]byte("base")})
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestTheKindOfABaseIsThatOfADifference(t *testing.T) {
	commit := plumbing.ComputeHash(plumbing.CommitObject, []byte("tree"))
	got, err := Read(bytes.NewReader(packWith(plain(t, plumbing.CommitObject, "tree"), toName(t, commit, suffixed("tree", "s")))), usual, oneObject{})
	if err != nil {
		t.Fatal(err)
	}
	if want := plumbing.ComputeHash(plumbing.CommitObject, []byte("trees")); got.Objects[1].Hash != want {
		t.Errorf("got %s, want %s", got.Objects[1].Hash, want)
	}
}

// forgetful is a store that knows the size of an object which it cannot read.
type forgetful struct{ oneObject }

func (forgetful) Object(plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	return plumbing.InvalidObject, nil, plumbing.ErrObjectNotFound
}

func TestDamagedPacksAreRefused(t *testing.T) {
	good := packWith(blob(t, "a"), blob(t, "b"))
	fromBase := toName(t, blobName("base"), suffixed("base", "d"))
	for name, tc := range map[string]struct {
		pack  []byte
		store Store
		kind  error
		says  string
	}{
		"no pack":                       {[]byte("no pack at all"), oneObject{}, nil, "reading the pack: "},
		"empty":                         {nil, oneObject{}, nil, "reading the pack: "},
		"cut off":                       {good[:len(good)-24], oneObject{}, nil, "reading the pack: "},
		"fewer objects than it says":    {packOf(3, blob(t, "a")), oneObject{}, nil, "reading the pack: "},
		"a base that is nowhere":        {packWith(fromBase), oneObject{[]byte("other")}, nil, "indexing the pack: it lacks an object that others are differences to"},
		"a base that cannot be read":    {packWith(fromBase), forgetful{oneObject{[]byte("base")}}, ErrBase, "reading what the commit's pack builds on: " + blobName("base").String()},
		"differences to each other":     {packWith(toName(t, blobName("ab"), suffixed("ab", "c")), toName(t, blobName("abc"), suffixed("abc", "d"))), oneObject{}, nil, "it lacks an object"},
		"a difference of another base":  {packWith(blob(t, "a"), toName(t, blobName("a"), suffixed("ab", "c"))), oneObject{}, errDelta, "indexing the pack: a delta in the pack is malformed"},
		"a difference that says little": {packWith(blob(t, "a"), toName(t, blobName("a"), []byte{1})), oneObject{}, failure.ErrTooLarge, "an object of the commit"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(bytes.NewReader(tc.pack), usual, tc.store)
			if got != nil || err == nil {
				t.Fatalf("got %v, %v", got, err)
			}
			if tc.kind == nil {
				tc.kind = err
			}
			sources.WantError(t, err, tc.kind, tc.says)
			if tc.kind != failure.ErrTooLarge && errors.Is(err, failure.ErrTooLarge) { //nolint:errorlint // the kind itself
				t.Error("a pack that is damaged is not too large")
			}
		})
	}
}
