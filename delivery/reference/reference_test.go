package reference

import "testing"

func TestName(t *testing.T) {
	const digest = "@sha256:0123"
	for _, name := range []string{"web", "org/web", "example.com/web", "example.com:5000/web", "localhost:5000/a/b"} {
		for _, tail := range []string{"", ":1.0", digest, ":1.0" + digest} {
			if got := Name(name + tail); got != name {
				t.Errorf("the name of %s is %s, want %s", name+tail, got, name)
			}
		}
	}
}
