package kubeconfig

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// kept is a token, with the ID of its kubeconfig.
type kept struct {
	ID      string    `json:"id"`
	Token   string    `json:"token"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
}

// file keeps a token. Programs do not share theirs, so that without it each call of kubectl would get one.
type file struct{ path string }

// fileOf returns the file in a folder, by default in that of the account, of what is asked for, and by whom: nobody uses the token of another identity.
func fileOf(folder string, of ...string) (file, error) {
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return file{}, fmt.Errorf("looking for the folder that keeps tokens; --cache names one: %w", err)
		}
		folder = filepath.Join(cache, "kubeop")
	}
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return file{filepath.Join(folder, "token-"+hex.EncodeToString(sum[:])+".json")}, nil
}

// identity returns the owner of a token: of a JWT the subject, which a person keeps when the ID token is renewed.
func identity(token string) string {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		var claims struct {
			Issuer  string `json:"iss"`
			Subject string `json:"sub"`
		}
		text, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && json.Unmarshal(text, &claims) == nil && claims.Subject != "" && !strings.HasPrefix(claims.Subject, "project:") {
			return claims.Issuer + "\x00" + claims.Subject
		}
	}
	return token
}

// maxKept bounds what is read of a file.
const maxKept = 64 << 10

// read returns what is kept, and nothing if that cannot be read, or others could have written it.
func (f file) read() (held kept) {
	in, err := os.Open(f.path)
	if err != nil {
		return kept{}
	}
	// Nothing was written, so closing cannot lose anything.
	defer func() { _ = in.Close() }()
	if about, err := in.Stat(); err != nil || !about.Mode().IsRegular() || runtime.GOOS != "windows" && about.Mode().Perm()&0o077 != 0 {
		return kept{}
	}
	text, err := io.ReadAll(io.LimitReader(in, maxKept))
	if err != nil || json.Unmarshal(text, &held) != nil {
		return kept{}
	}
	return held
}

// write keeps a token in place of the one before. Nobody sees half of it.
func (f file) write(held kept) error {
	text, err := json.Marshal(held)
	if err != nil {
		return errors.New("keeping the token") // The error may have it.
	}
	folder := filepath.Dir(f.path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("keeping the token; --cache names another folder: %w", err)
	}
	temporary, err := os.CreateTemp(folder, "token-*") // Only its owner may read it.
	if err != nil {
		return fmt.Errorf("keeping the token; --cache names another folder: %w", err)
	}
	_, err = temporary.Write(text)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("keeping the token: %w", errors.Join(err, os.Remove(temporary.Name())))
	}
	return nil
}
