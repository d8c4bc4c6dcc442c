package postgres

import "testing"

func TestVersionsAreNumbers(t *testing.T) {
	old, newer := version("/usr/lib/postgresql/9.6/bin/initdb"), version("/usr/lib/postgresql/17/bin/initdb")
	if old != 9.6 || newer != 17 || version("/usr/bin/initdb") != 0 {
		t.Errorf("%g, %g and %g", old, newer, version("/usr/bin/initdb"))
	}
}
