package decrypt

import (
	"fmt"
	"strings"
)

// dataKey decrypts the key of a file with the keys at hand.
func (f *Files) dataKey(about *metadata) ([]byte, error) {
	if err := about.check(); err != nil {
		return nil, err
	}
	groups := about.groups()
	if len(groups) > 1 {
		return f.sharedKey(about, groups)
	}
	if key := f.unlock(&groups[0], keyBytes); key != nil {
		return key, nil
	}
	if err := f.tooManyTries(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("no key in Secret %s decrypts it; it is encrypted for %s: %w", f.keys.secret, groups[0].recipients(), ErrKeys)
}

// sharedKey puts the data key together from the parts of as many groups as it takes.
func (f *Files) sharedKey(about *metadata, groups []group) ([]byte, error) {
	threshold, err := about.threshold(len(groups))
	if err != nil {
		return nil, err
	}
	var parts [][]byte
	var locked []string
	for i := range groups {
		part := f.unlock(&groups[i], partBytes)
		if part == nil {
			locked = append(locked, fmt.Sprintf("group %d for %s", i+1, groups[i].recipients()))
			continue
		}
		if parts = append(parts, part); len(parts) == threshold {
			return combine(parts)
		}
	}
	if err := f.tooManyTries(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the keys in Secret %s decrypt %d of its %d key groups, and it takes %d: add a key of another: %s: %w",
		f.keys.secret, len(parts), len(groups), threshold, strings.Join(locked, "; "), ErrKeys)
}

// unlock decrypts what a group holds with any of the keys at hand; nil when none does, or it is of another size in bytes.
func (f *Files) unlock(g *group, size int) []byte {
	for _, r := range g.Age {
		if key := f.keys.age(r.Enc, f.try); len(key) == size {
			return key
		}
	}
	for _, r := range g.PGP {
		if key := f.keys.pgp(r.Enc, f.try); len(key) == size {
			return key
		}
	}
	return nil
}

func (f *Files) tooManyTries() error {
	if f.tries <= maxTries {
		return nil
	}
	return fmt.Errorf("to decrypt the files of an app, keys may be tried %d times together, each key of the Secret on each recipient of each file: use fewer of them: %w", maxTries, ErrKeys)
}
