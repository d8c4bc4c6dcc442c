package fingerprint

import "testing"

// TestASecretIsSettledUntilAWatchShowsANewerVersion: a Secret is compared by its resourceVersion, and a watch may lag behind a write.
func TestASecretIsSettledUntilAWatchShowsANewerVersion(t *testing.T) {
	for name, c := range map[string]struct {
		recorded, now string
		want          bool
	}{
		"the same":                           {"manifest@7", "manifest@7", true},
		"the watch shows an older version":   {"manifest@10", "manifest@9", true},
		"it was changed":                     {"manifest@9", "manifest@10", false},
		"another manifest, as old":           {"manifest@7", "changed@7", false},
		"another manifest, an older version": {"manifest@10", "changed@9", false},
		"a version that is no number":        {"manifest@b", "manifest@a", false},
		"no Secret, the same":                {"manifeststate", "manifeststate", true},
		"no Secret, changed":                 {"manifeststate", "manifestother", false},
		"it was no Secret when recorded":     {"manifeststate", "manifest@9", false},
		"it is no Secret any more":           {"manifest@9", "manifeststate", false},
	} {
		if got := SameState(c.recorded, c.now); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
