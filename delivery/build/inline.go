package build

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/delivery/decrypt"
)

// decryptInline decrypts the manifests in the spec itself. The API server sorts keys alphabetically, so the MAC of such a manifest must be
// over that order.
func decryptInline(files *decrypt.Files, manifests []runtime.RawExtension) error {
	for i := range manifests {
		plain, err := files.Manifest(fmt.Sprintf("spec.raw.manifests[%d]", i), manifests[i].Raw)
		if errors.Is(err, decrypt.ErrDamaged) {
			return fmt.Errorf("%w; inline manifests must be encrypted with their keys in alphabetical order, others belong in a folder", err)
		}
		if err != nil {
			return err
		}
		manifests[i].Raw = plain
	}
	return nil
}
