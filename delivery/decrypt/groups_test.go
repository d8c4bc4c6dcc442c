package decrypt

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCombine puts parts together that lie on lines and parabolas through a key of 7s: in GF(256), y is 7 + 3x, and 7 + 3x + 5x².
func TestCombine(t *testing.T) {
	part := func(x byte, squared byte) []byte {
		y := 7 ^ multiply(3, x) ^ multiply(squared, multiply(x, x))
		return append(bytes.Repeat([]byte{y}, keyBytes), x)
	}
	tests := map[string]struct {
		parts [][]byte
		is    error
		other bool
	}{
		"two of a line":            {parts: [][]byte{part(1, 0), part(255, 0)}},
		"three of a line":          {parts: [][]byte{part(9, 0), part(200, 0), part(3, 0)}},
		"three of a parabola":      {parts: [][]byte{part(9, 5), part(200, 5), part(3, 5)}},
		"too few of a parabola":    {parts: [][]byte{part(9, 5), part(200, 5)}, other: true},
		"the same part twice":      {parts: [][]byte{part(9, 0), part(9, 0)}, is: ErrDamaged},
		"the key itself as a part": {parts: [][]byte{part(0, 0), part(9, 0)}, is: ErrDamaged},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := combine(tc.parts)
			if !errors.Is(err, tc.is) {
				t.Fatalf("got %v, want %v", err, tc.is)
			}
			if whole := bytes.Equal(got, bytes.Repeat([]byte{7}, keyBytes)); err == nil && whole == tc.other {
				t.Errorf("got the key: %t", whole)
			}
		})
	}
}

func TestInverse(t *testing.T) {
	for a := 1; a < 256; a++ {
		if got := multiply(byte(a), inverse(byte(a))); got != 1 {
			t.Errorf("%d by its inverse is %d", a, got)
		}
	}
}

func TestKeysOutsideOfGroupsGoFirst(t *testing.T) {
	m := readMetadata(mapping{
		{"mac", "x"}, {"kms", []any{mapping{{"arn", "x"}}}},
		{"key_groups", []any{mapping{{"age", []any{mapping{{"recipient", "a"}}}}}, nil}},
	})
	groups := m.groups()
	if len(groups) != 1 || groups[0].recipients() != "kms (which is not supported)" {
		t.Errorf("got %v", groups)
	}
	m.others = nil
	if groups := m.groups(); len(groups) != 2 || groups[0].recipients() != `age "a"` || groups[1].recipients() != "no key" {
		t.Errorf("got %v", groups)
	}
}

func TestUnflatten(t *testing.T) {
	got := unflatten(mapping{
		{"mac", "x"}, {"age__list_0__map_enc", "e"}, {"age__list_0__map_recipient", "r"}, {"age__list_4000000000__map_enc", "f"},
		{"age__list_none__map_enc", "g"}, {"key_groups__list_1__map_pgp__list_0__map_fp", "p"}, {strings.Repeat("a__list_64", 100_000), "deep"},
	})
	want := map[string]any{
		"mac":        "x",
		"age":        []any{map[string]any{"enc": "e", "recipient": "r"}, map[string]any{"enc": "f"}},
		"key_groups": []any{map[string]any{"pgp": []any{map[string]any{"fp": "p"}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAnINIFileEncryptedAsOneValue has the extension of another format, as "sops encrypt --input-type binary" makes it.
func TestAnINIFileEncryptedAsOneValue(t *testing.T) {
	got, err := fs.ReadFile(Open(one("note.ini", read(t, "note.txt")), keysOf(t, "one.agekey")), "note.ini")
	if err != nil || string(got) != string(read(t, "note.txt.plain")) {
		t.Errorf("got %q, %v", got, err)
	}
}

// BenchmarkReadFile is what a push with a secret waits for.
func BenchmarkReadFile(b *testing.B) {
	for name, key := range map[string]string{"secret.yaml": "one.agekey", "shamir.yaml": "groups.agekey", "settings.ini": "one.agekey"} {
		keys := keysOf(b, key)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := fs.ReadFile(Open(os.DirFS("testdata"), keys), name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
