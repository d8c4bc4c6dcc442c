package mask

import "testing"

// TestTextsHidesWhateverOverlaps: where two texts overlap, no rest of either stays, and short ones are hidden, too.
func TestTextsHidesWhateverOverlaps(t *testing.T) {
	for text, want := range map[string]string{
		"it is abcdefgh":  "it is ***",
		"it is abcdef":    "it is ***",
		"it is pw, or no": "it is ***, or no",
		"nothing":         "nothing",
	} {
		if got := Texts([]string{"abcdef", "cdefgh", "pw"})(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
