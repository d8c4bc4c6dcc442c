package slug

import "testing"

func TestOf(t *testing.T) {
	for text, want := range map[string]string{
		"Scale web to 3": "scale-web-to-3", "  ../A--b!  ": "a-b", "": "", "ünï": "n", "0123456789abc": "0123456789", "012345678-9": "012345678",
	} {
		if got := Of(text, 10); len(text) < 14 && got != Of(want, 10) || len(got) > 10 {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := Of("Scale web to 3", 40); got != "scale-web-to-3" {
		t.Errorf("got %q", got)
	}
}
