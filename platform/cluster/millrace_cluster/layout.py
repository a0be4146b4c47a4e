"""What the cluster looks like: its nodes, its address ranges, and the volumes that every node sees. Pure."""

from pathlib import Path

from millrace_cluster.places import NAME

POD_RANGE = "100.66.0.0/16"
SERVICE_RANGE = "100.67.0.0/16"
NODES = (f"{NAME}-control-plane", f"{NAME}-worker")
STORAGE_CLASS = "shared"
VOLUMES_IN_NODE = "/var/local/millrace"
VOLUMES = 60  # one per claim; those that were given back are renewed by the next `up`
VOLUME_SIZE = "1Ti"  # larger than any claim: all of them lie in one folder, and nobody measures

# A node of a kind cluster with workers refuses ordinary pods when it is the control plane. Here it takes them, so that
# two nodes share the work, and a volume that only one of them can see shows.
UNTAINT = "kind: InitConfiguration\nnodeRegistration:\n  taints: []\n"


def kind_config(volumes: Path) -> dict[str, object]:
    """What kind is asked for. JSON is YAML, so it goes to kind as it is."""
    mounts = [{"hostPath": str(volumes), "containerPath": VOLUMES_IN_NODE}]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": NAME,
        "networking": {"podSubnet": POD_RANGE, "serviceSubnet": SERVICE_RANGE, "ipFamily": "ipv4"},
        "nodes": [
            {"role": "control-plane", "extraMounts": mounts, "kubeadmConfigPatches": [UNTAINT]},
            {"role": "worker", "extraMounts": mounts},
        ],
    }


def storage_class() -> dict[str, object]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "Immediate",  # every node sees every volume, so there is nothing to wait for
        "reclaimPolicy": "Retain",
    }


def volume_name(number: int) -> str:
    return f"{STORAGE_CLASS}-{number:02}"


def volume(name: str) -> dict[str, object]:
    """A folder that every node sees and many may write."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": STORAGE_CLASS,
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            "capacity": {"storage": VOLUME_SIZE},
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": f"{VOLUMES_IN_NODE}/{name}", "type": "Directory"},
        },
    }
