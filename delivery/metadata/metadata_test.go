package metadata

import (
	"errors"
	"fmt"
	"testing"
)

func TestChangingIsRecognizedAndSaysWhatCouldNotBeDone(t *testing.T) {
	err := fmt.Errorf("ConfigMap/one: %w", Changing("deleted"))
	if want := "ConfigMap/one: it changes all the time, so it could not be deleted"; !errors.Is(err, ErrChanging) || err.Error() != want {
		t.Errorf("got %q, an ErrChanging: %t", err, errors.Is(err, ErrChanging))
	}
}
