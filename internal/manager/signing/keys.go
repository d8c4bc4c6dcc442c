// Package signing signs and verifies the JWTs of projects, and rotates the keys that sign them. A key is published before it signs, and stays
// published until the last JWT that it signed expires. So a program that verifies JWTs with the published keys always has the key.
package signing

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/store"
)

const (
	// MaxLife is the longest validity of a JWT.
	MaxLife = 24 * time.Hour
	// signs is how long a key signs. publishedBefore is how long before it begins to sign a key is made and published.
	signs           = 30 * 24 * time.Hour
	publishedBefore = 24 * time.Hour
	// leeway is how far the clocks of two managers may differ.
	leeway = 30 * time.Second
	// kept is how long a key is kept after it stops signing.
	kept = MaxLife + 2*leeway
	// refreshEvery is how often the keys are read again: another manager may have added or revoked one.
	refreshEvery = time.Minute
)

// Keys are the keys that sign JWTs.
type Keys struct {
	// Issuer is the iss of the JWTs, and the aud of those for the manager itself.
	Issuer string
	// File has the keys that encrypt the private keys. If it is "", nothing is signed.
	File  string
	Store store.SigningKeys
	Now   func() time.Time

	mu   sync.RWMutex
	keys []key
	why  error
}

type key struct {
	id          string
	private     ed25519.PrivateKey
	from, until time.Time
}

// Run refreshes the keys regularly, until the context ends.
func (k *Keys) Run(ctx context.Context) error {
	again := time.NewTicker(refreshEvery)
	defer again.Stop()
	for {
		before := k.Check(ctx)
		k.Refresh(ctx)
		if why := k.Check(ctx); why != nil && before == nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(why, "Reading the keys that sign JWTs")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

// Check returns an error if the last Refresh failed, or could not read all keys.
func (k *Keys) Check(context.Context) error {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.why
}

// Refresh reads the keys, adds the next one if it is time, and drops those whose JWTs have all expired. If it fails, the keys from before stay, except
// for those that the store does not have any more.
func (k *Keys) Refresh(ctx context.Context) {
	if k.File == "" {
		return
	}
	read, err := k.refresh(ctx)
	var stored []store.SigningKey
	var unlisted error
	if err != nil {
		stored, unlisted = k.Store.ListSigningKeys(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch k.why = err; {
	case len(read) > 0:
		k.keys = read
	case err != nil && unlisted == nil: // What was revoked goes, whatever else fails.
		k.keys = slices.DeleteFunc(slices.Clone(k.keys), func(of key) bool {
			return !slices.ContainsFunc(stored, func(s store.SigningKey) bool { return s.Private.ID == of.id })
		})
	}
}

func (k *Keys) refresh(ctx context.Context) ([]key, error) {
	wrapping, err := kms.Read(k.File)
	if err != nil {
		return nil, err
	}
	now := store.Time(k.Now())
	stored, err := k.Store.ListSigningKeys(ctx)
	if err != nil {
		return nil, err
	}
	if len(stored) > 0 && !stored[0].Until.After(now.Add(-kept)) {
		if err := k.Store.DropSigningKeys(ctx, now.Add(-kept)); err != nil {
			return nil, err
		}
		return k.refresh(ctx)
	}
	if len(stored) == 0 || now.Add(publishedBefore).After(stored[len(stored)-1].Until) {
		from := now
		if len(stored) > 0 && stored[len(stored)-1].Until.After(now) {
			from = stored[len(stored)-1].Until
		}
		if err := k.add(ctx, wrapping, now, from); err != nil {
			return nil, err
		}
		if stored, err = k.Store.ListSigningKeys(ctx); err != nil {
			return nil, err
		}
	}
	return open(wrapping, stored)
}

func (k *Keys) add(ctx context.Context, wrapping *kms.Keys, now, from time.Time) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	id := idOf(public)
	sealed, err := wrapping.Seal(kms.Place{Table: store.KindSigningKey, ID: id}, private.Seed())
	if err != nil {
		return err
	}
	_, err = k.Store.AddSigningKey(ctx, store.SigningKey{
		Private: store.Sealed{Kind: store.KindSigningKey, ID: id, Key: sealed.Key, Data: sealed.Data}, Created: now, From: from, Until: from.Add(signs),
	})
	return err
}

// idOf derives the ID of a key from its public part.
func idOf(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// open decrypts keys. The error is about those that cannot be decrypted. It derives each public key from the private one: if the store had public
// keys, somebody who can write to the database could add one, and forge JWTs.
func open(wrapping *kms.Keys, stored []store.SigningKey) (all []key, err error) {
	var failed []error
	for _, s := range stored {
		seed, err := wrapping.Open(kms.Place{Table: s.Private.Kind, ID: s.Private.ID}, kms.Sealed{Key: s.Private.Key, Data: s.Private.Data})
		if err == nil && len(seed) != ed25519.SeedSize {
			err = fmt.Errorf("the record %s of %s is no private key", s.Private.ID, s.Private.Kind)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, key{s.Private.ID, ed25519.NewKeyFromSeed(seed), s.From, s.Until})
	}
	if len(failed) > 0 {
		failed = append(failed, errors.New("an administrator of the cluster puts the missing key into KEY_FILE, or, if it is lost, has new ones made by: manager revoke-jwts"))
	}
	return all, errors.Join(failed...)
}

// JWK is a public key in the form of RFC 8037.
type JWK struct {
	Type      string `json:"kty" enum:"OKP"`
	Curve     string `json:"crv" enum:"Ed25519"`
	X         string `json:"x" doc:"The public key."`
	ID        string `json:"kid" doc:"The id of the key, which a JWT has in its header."`
	Algorithm string `json:"alg" enum:"EdDSA"`
	Use       string `json:"use" enum:"sig"`
}

// Published returns the public keys, for programs that verify JWTs.
func (k *Keys) Published() []JWK {
	all := []JWK{}
	for _, one := range k.valid() {
		public := base64.RawURLEncoding.EncodeToString(one.private.Public().(ed25519.PublicKey))
		all = append(all, JWK{Type: "OKP", Curve: "Ed25519", X: public, ID: one.id, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	return all
}

// valid returns the keys that may have signed a valid JWT, in the order in which they sign.
func (k *Keys) valid() (all []key) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, one := range k.keys {
		if k.Now().Before(one.until.Add(kept)) {
			all = append(all, one)
		}
	}
	return all
}

// current returns the key that signs now, nil if there is none.
func (k *Keys) current() *key {
	now := k.Now()
	var found *key
	for _, one := range k.valid() {
		// If the clock was set back, the first key may not have begun to sign.
		if now.Before(one.until) && (found == nil || !one.from.After(now)) {
			found = &one
		}
	}
	return found
}
