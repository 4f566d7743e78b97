"""Let jsii run on the Node.js that came with the requirements, unless another one is named.

jsii starts Node.js when the CDK is first imported. An app that imports the CDK before this package
has found a Node.js already.
"""

import sys

from ultrascale.node import use_node

if "jsii" not in sys.modules:
    use_node()
