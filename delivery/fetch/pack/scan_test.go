package pack

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestEachLimitIsExact reads packs with a limit that they just meet, and with one that is less by one.
func TestEachLimitIsExact(t *testing.T) {
	large := strings.Repeat("x", 100)
	delta := suffixed("base", "d")
	cases := map[string]struct {
		objects [][]byte
		limit   func(*Limits) *int64
		meets   int64
		kind    error
		says    string
	}{
		"objects":                    {[][]byte{blob(t, "a"), blob(t, "b")}, func(l *Limits) *int64 { return &l.Objects }, 2, failure.ErrTooLarge, "the number of objects in the commit's pack is over the limit of 1"},
		"inflated":                   {[][]byte{blob(t, "abc"), blob(t, "de")}, func(l *Limits) *int64 { return &l.Inflated }, 5, failure.ErrTooLarge, "inflate to, together, is larger than the limit of 4 bytes"},
		"object":                     {[][]byte{plain(t, plumbing.TreeObject, large)}, func(l *Limits) *int64 { return &l.Object }, 100, failure.ErrTooLarge, "an object of 100 bytes in the commit is larger than the limit"},
		"made":                       {[][]byte{blob(t, "base"), toName(t, blobName("base"), suffixed("base", large))}, func(l *Limits) *int64 { return &l.Object }, int64(len(suffixed("base", large))), failure.ErrTooLarge, "in the commit is larger than the limit"},
		"chain":                      {[][]byte{blob(t, "base"), toName(t, blobName("base"), delta)}, func(l *Limits) *int64 { return &l.Chain }, 9, failure.ErrTooLarge, "a chain of differences in the commit's pack is larger than the limit of 8 bytes"},
		"by offset":                  {[][]byte{blob(t, "base"), toOffset(t, len(blob(t, "base")), delta)}, func(l *Limits) *int64 { return &l.Chain }, 9, failure.ErrTooLarge, "a chain of differences"},
		"any before":                 {[][]byte{blob(t, "12345678"), blob(t, "a"), toName(t, blobName("a"), suffixed("a", "b"))}, func(l *Limits) *int64 { return &l.Chain }, 10, failure.ErrTooLarge, "a chain of differences"},
		"of ours":                    {[][]byte{toName(t, blobName("ours"), suffixed("ours", "!"))}, func(l *Limits) *int64 { return &l.Chain }, 9, failure.ErrTooLarge, "a chain of differences"},
		"base":                       {[][]byte{toName(t, blobName("ours"), suffixed("ours", "!"))}, func(l *Limits) *int64 { return &l.Base }, 4, nil, "it lacks an object"},
		"bases":                      {[][]byte{toName(t, blobName("ours"), suffixed("ours", "!")), toName(t, blobName("ours"), suffixed("ours", "?"))}, func(l *Limits) *int64 { return &l.Bases }, 4, nil, "the commit's pack builds on more than 3 bytes of what is in the store"},
		"inflated, with differences": {[][]byte{blob(t, "base"), toName(t, blobName("base"), delta)}, func(l *Limits) *int64 { return &l.Inflated }, int64(4 + 5 + len(delta)), failure.ErrTooLarge, "inflate to, together"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := usual
			limits.Oversized = 0
			read := func(value int64) error {
				*tc.limit(&limits) = value
				_, err := Read(bytes.NewReader(packWith(tc.objects...)), limits, oneObject{[]byte("ours")})
				return err
			}
			if err := read(tc.meets); err != nil {
				t.Errorf("what meets the limit is refused: %v", err)
			}
			if err := read(tc.meets - 1); err == nil || !strings.Contains(err.Error(), tc.says) || errors.Is(err, failure.ErrTooLarge) != (tc.kind != nil) {
				t.Errorf("what is over by one: %v", err)
			}
		})
	}
}

func TestAPackThatInflatesTooMuchExceedsTheTenantsLimit(t *testing.T) {
	limits := usual
	limits.Inflated = 3
	_, err := Read(bytes.NewReader(packWith(blob(t, "four"))), limits, oneObject{})
	var exceeded *budget.Exceeded
	if !errors.As(err, &exceeded) || exceeded.Field.Name != budget.PackBytes.Name {
		t.Errorf("got %v", err)
	}
	limits = usual
	limits.Chain = 3
	if _, err := Read(bytes.NewReader(packWith(blob(t, "four"))), limits, oneObject{}); errors.As(err, &exceeded) || !errors.Is(err, failure.ErrTooLarge) {
		t.Errorf("another limit is not the tenant's: %v", err)
	}
}

// TestAFileThatIsTooLargeToBeReadIsKept: it has a name, counts in Oversized only, and is none that others are differences to.
func TestAFileThatIsTooLargeToBeReadIsKept(t *testing.T) {
	limits := usual
	limits.Object, limits.Inflated, limits.Oversized = 10, 5, 22
	eleven := strings.Repeat("x", 11)
	objects := [][]byte{blob(t, eleven), blob(t, "small"), blob(t, eleven[1:]+"y")}
	got, err := Read(bytes.NewReader(packWith(objects...)), limits, oneObject{})
	if err != nil {
		t.Fatal(err)
	}
	for i, content := range []string{eleven, "small", eleven[1:] + "y"} {
		if got.Objects[i].Hash != blobName(content) {
			t.Errorf("object %d has another name", i)
		}
	}
	limits.Oversized = 21
	_, err = Read(bytes.NewReader(packWith(objects...)), limits, oneObject{})
	sources.WantError(t, err, failure.ErrTooLarge, "an object of 11 bytes in the commit is larger than the limit of 21 bytes")
	limits.Oversized = 22
	_, err = Read(bytes.NewReader(packWith(blob(t, eleven), toName(t, blobName(eleven), []byte{11, 1, 1, 'y'}))), limits, oneObject{})
	sources.WantError(t, err, failure.ErrTooLarge, "an object of the commit that others are differences to is larger than the limit of 10 bytes")
	_, err = Read(bytes.NewReader(packWith(blob(t, "a"), toName(t, blobName("a"), suffixed("a", eleven)))), limits, oneObject{})
	sources.WantError(t, err, failure.ErrTooLarge, "in the commit is larger than the limit")
}

// TestTheFileThatIsTooLargeIsNamed by its path, as far as the folders are in the pack before it.
func TestTheFileThatIsTooLargeIsNamed(t *testing.T) {
	big := strings.Repeat("x", 300)
	folder := func(name string, of plumbing.Hash) string { return "40000 " + name + "\x00" + string(of[:]) }
	file := func(name string, of plumbing.Hash) string { return "100644 " + name + "\x00" + string(of[:]) }
	nameOfTree := func(content string) plumbing.Hash {
		return plumbing.ComputeHash(plumbing.TreeObject, []byte(content))
	}
	inner := file("other", blobName("other")) + file("video.mp4", blobName(big))
	outer := folder("media", nameOfTree(inner))
	odd := file("a\nb", blobName(big))
	tree := func(content string) []byte { return plain(t, plumbing.TreeObject, content) }
	for name, tc := range map[string]struct {
		objects [][]byte
		says    string
	}{
		"its folders":          {[][]byte{tree(outer), tree(inner), blob(t, big)}, "the file media/video.mp4 has 300 bytes, and the limit is 299 bytes: take it out of Git"},
		"in another order":     {[][]byte{tree(inner), blob(t, "x"), tree(outer), blob(t, big)}, "the file media/video.mp4 has 300 bytes"},
		"its own folder only":  {[][]byte{tree(inner), blob(t, big)}, "the file video.mp4 has 300 bytes"},
		"no folder":            {[][]byte{blob(t, big)}, "an object of 300 bytes in the commit is larger than the limit of 299 bytes"},
		"a folder behind it":   {[][]byte{blob(t, big), tree(inner)}, "an object of 300 bytes in the commit"},
		"another folder":       {[][]byte{tree(file("a", blobName("a"))), blob(t, big)}, "an object of 300 bytes in the commit"},
		"a file like a folder": {[][]byte{blob(t, inner), blob(t, big)}, "an object of 300 bytes in the commit"},
		"a name of two lines":  {[][]byte{tree(odd), blob(t, big)}, "the file a b has 300 bytes"},
		"not a file, a commit": {[][]byte{tree(inner), plain(t, plumbing.CommitObject, big)}, "an object of 300 bytes in the commit"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := usual
			limits.Object, limits.Oversized = 200, 299
			_, err := Read(bytes.NewReader(packWith(tc.objects...)), limits, oneObject{})
			sources.WantError(t, err, failure.ErrTooLarge, tc.says)
		})
	}
}

func TestASmallPackIsReadAtOnceAndAnyOtherIsNot(t *testing.T) {
	huge := Limits{Objects: limit.GiB, Inflated: limit.GiB, Object: limit.GiB, Oversized: limit.GiB, Chain: limit.GiB, Base: limit.GiB, Bases: limit.GiB}
	mib := strings.Repeat("x", limit.MiB)
	for name, tc := range map[string]struct {
		pack  []byte
		large bool
	}{
		"small":           {packWith(blob(t, "a")), false},
		"1 MiB":           {packWith(blob(t, mib)), false},
		"more":            {packWith(blob(t, mib+"x")), true},
		"together more":   {packWith(blob(t, mib), blob(t, "x")), true},
		"more objects":    {packOf(2001, nil), true},
		"a thin one":      {packWith(toName(t, blobName("base"), suffixed("base", "d"))), false},
		"damaged":         {packOf(2000, nil), false},
		"a base of 1 MiB": {packWith(toName(t, blobName(mib), nil)), true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readSmall(bytes.NewReader(tc.pack), huge, oneObject{[]byte("base")})
			if errors.Is(err, errLarge) != tc.large {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, failure.ErrTooLarge) {
				t.Errorf("a limit of small packs is reported as one of the tenant: %v", err)
			}
		})
	}
	limits := huge
	limits.Objects = 1
	if _, err := readSmall(bytes.NewReader(packWith(blob(t, "a"), blob(t, "b"))), limits, oneObject{}); !errors.Is(err, errLarge) {
		t.Errorf("a limit that is lower than that of small packs is not kept: %v", err)
	}
}

func TestTheSmallerOfEachLimitHolds(t *testing.T) {
	low := Limits{Objects: 1, Inflated: 2, Object: 3, Oversized: 4, Chain: 5, Base: 6, Bases: 7}
	high := Limits{Objects: 10, Inflated: 20, Object: 30, Oversized: 40, Chain: 50, Base: 60, Bases: 70}
	for _, got := range []Limits{low.within(high), high.within(low)} {
		if diff := cmp.Diff(low, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTheProcessorTimeGrowsWithTheInflatedSize(t *testing.T) {
	for want, limits := range map[time.Duration]Limits{
		0: {Object: limit.GiB}, 20 * time.Second: {Inflated: limit.GiB}, 30 * time.Second: {Inflated: limit.GiB, Oversized: limit.GiB / 2},
	} {
		if got := limits.CPU(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
